/**
 * The attributes of a queue as AWS returns them. Servers for tests leave some out, and none encrypts.
 * https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_SetQueueAttributes.html
 */

export type Attributes = Readonly<Record<string, string>>

const encryption = ["KmsMasterKeyId", "KmsDataKeyReusePeriodSeconds", "SqsManagedSseEnabled"]

const defaults: Attributes = {
  MaximumMessageSize: "1048576",
  MessageRetentionPeriod: "345600",
  SqsManagedSseEnabled: "true",
  KmsDataKeyReusePeriodSeconds: "300"
}

const fifoDefaults: Attributes = {
  ContentBasedDeduplication: "false",
  DeduplicationScope: "queue",
  FifoThroughputLimit: "perQueue"
}

const filter = (attributes: Attributes, keeps: (name: string, value: string) => boolean): Attributes =>
  Object.fromEntries(Object.entries(attributes).filter(([name, value]) => keeps(name, value)))

/** The attributes that the server behind receives: some servers reject a key. */
export const passed = (attributes: Attributes): Attributes => filter(attributes, (name) => !encryption.includes(name))

/** Adds attributes that a client sets to earlier ones. A key ends the encryption by SQS itself. */
export const changed = (before: Attributes, attributes: Attributes): Attributes => ({
  ...before,
  ...((attributes["KmsMasterKeyId"] ?? "") === "" ? {} : { SqsManagedSseEnabled: "false" }),
  ...attributes
})

/** All attributes of a queue: those of the server, and those that were set through the proxy. */
export const told = (server: Attributes, set: Attributes, fifo: boolean): Attributes => {
  const all = { ...defaults, ...(fifo ? fifoDefaults : {}), ...set, ...passed(server) }
  const hasKey = (set["KmsMasterKeyId"] ?? "") !== ""
  return filter(all, (name, value) => value !== "" && (hasKey || !name.startsWith("Kms")))
}

/** The attributes that a call requests. */
export const asked = (attributes: Attributes, names: ReadonlyArray<string>): Attributes =>
  names.includes("All") ? attributes : filter(attributes, (name) => names.includes(name))
