/**
 * The attributes of a queue as AWS tells them. Servers for tests leave some out, and none encrypts.
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

/** Those that the server behind gets: a key would be refused by some of them. */
export const passed = (attributes: Attributes): Attributes => filter(attributes, (name) => !encryption.includes(name))

/** Adds attributes that a client sets to those that it has set before. A key ends the encryption by SQS itself. */
export const changed = (before: Attributes, attributes: Attributes): Attributes => ({
  ...before,
  ...((attributes["KmsMasterKeyId"] ?? "") === "" ? {} : { SqsManagedSseEnabled: "false" }),
  ...attributes
})

/** All attributes of a queue, from those that the server tells and those that were set through the proxy. */
export const told = (server: Attributes, set: Attributes, fifo: boolean): Attributes => {
  const all = { ...defaults, ...(fifo ? fifoDefaults : {}), ...set, ...passed(server) }
  const hasKey = (set["KmsMasterKeyId"] ?? "") !== ""
  return filter(all, (name, value) => value !== "" && (hasKey || !name.startsWith("Kms")))
}

/** Those that a call asks for. */
export const asked = (attributes: Attributes, names: ReadonlyArray<string>): Attributes =>
  names.includes("All") ? attributes : filter(attributes, (name) => names.includes(name))
