/**
 * The rules for names and attributes of queues.
 *
 * | rule | source |
 * | --- | --- |
 * | attributes have these names and ranges | https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_SetQueueAttributes.html |
 * | a standard queue has no attribute of FIFO queues, not even `false` | test_create_standard_queue_with_fifo_attribute_raises_error of LocalStack |
 * | a queue does not change its kind | test_set_unsupported_attribute_fifo of LocalStack |
 * | a key of KMS and the encryption by SQS exclude each other | test_sse_kms_and_sqs_are_mutually_exclusive of LocalStack |
 * | a redrive policy has a target and a count of 1 to 1,000 | https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-dead-letter-queues.html |
 * | a name has 1 to 80 letters, digits, hyphens and underscores; only a FIFO queue's ends with `.fifo` | https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_CreateQueue.html |
 */
import * as Api from "./Api.ts"
import {
  type AwsError,
  invalidAttributeName,
  invalidAttributeValue,
  invalidParameter,
  invalidValue
} from "./AwsError.ts"

/** The attributes of a queue. */
export type Attributes = Readonly<Record<string, string>>

const ranges: Readonly<Record<string, readonly [min: number, max: number]>> = {
  DelaySeconds: [0, 900],
  MaximumMessageSize: [1024, 1_048_576],
  MessageRetentionPeriod: [60, 1_209_600],
  ReceiveMessageWaitTimeSeconds: [0, 20],
  VisibilityTimeout: [0, 43_200],
  KmsDataKeyReusePeriodSeconds: [60, 86_400]
}

const fifoOnly = ["FifoQueue", "ContentBasedDeduplication", "DeduplicationScope", "FifoThroughputLimit"]

const known = new Set([
  ...Object.keys(ranges),
  ...fifoOnly,
  "Policy",
  "RedrivePolicy",
  "RedriveAllowPolicy",
  "KmsMasterKeyId",
  "SqsManagedSseEnabled"
])

const isTrue = (text = ""): boolean => text.toLowerCase() === "true"

const nameRefusal = (name: string, isFifo: boolean): AwsError | undefined => {
  if (!known.has(name)) return invalidAttributeName(`Unknown Attribute ${name}.`)
  if (isFifo || !fifoOnly.includes(name)) return undefined
  return invalidAttributeName(
    name === "DeduplicationScope" || name === "FifoThroughputLimit"
      ? `You can specify the ${name} only when FifoQueue is set to true.`
      : `Unknown Attribute ${name}.`
  )
}

const redriveRefusal = (policy = ""): AwsError | undefined => {
  if (policy === "") return undefined
  const { deadLetterTargetArn, maxReceiveCount } = Api.jsonOf(policy)
  const count = Number(maxReceiveCount)
  if (deadLetterTargetArn === undefined) return invalidValue("RedrivePolicy", policy, "deadLetterTargetArn is missing.")
  if (Number.isInteger(count) && count >= 1 && count <= 1000) return undefined
  const reason = `Invalid value for maxReceiveCount: ${count}, valid values are from 1 to 1000.`
  return invalidValue("RedrivePolicy", policy, reason)
}

const valuesRefusal = (attributes: Attributes, isFifo: boolean): AwsError | undefined => {
  for (const [name, text] of Object.entries(attributes)) {
    const refused = nameRefusal(name, isFifo)
    if (refused !== undefined) return refused
    const [min, max] = ranges[name] ?? []
    const value = Number(text)
    if (min !== undefined && max !== undefined && !(Number.isInteger(value) && value >= min && value <= max))
      return invalidAttributeValue(name)
  }
  if ((attributes["KmsMasterKeyId"] ?? "") !== "" && isTrue(attributes["SqsManagedSseEnabled"])) {
    const one = "You can use one type of server-side encryption (SSE) at one time."
    return invalidAttributeName(`${one} You can either enable KMS SSE or SQS SSE.`)
  }
  return redriveRefusal(attributes["RedrivePolicy"])
}

/** Returns why SQS refuses to create a queue; `undefined` if it does not. */
export const createRefusal = (name: string, attributes: Attributes): AwsError | undefined => {
  const characters = "Can only include alphanumeric characters, hyphens, or underscores. 1 to 80 in length"
  const isFifo = isTrue(attributes["FifoQueue"])
  if (!(isFifo ? /^[\w-]{1,75}\.fifo$/ : /^[\w-]{1,80}$/).test(name)) {
    const suffix = isFifo ? "The name of a FIFO queue must end with the .fifo suffix. Its characters: " : ""
    return invalidParameter(`${suffix}${characters}`)
  }
  return valuesRefusal(attributes, isFifo)
}

/** Returns why SQS refuses new attributes of a queue; `undefined` if it does not. */
export const changeRefusal = (attributes: Attributes, isFifo: boolean): AwsError | undefined =>
  isFifo && attributes["FifoQueue"] !== undefined && !isTrue(attributes["FifoQueue"])
    ? invalidAttributeValue("FifoQueue", " Reason: Modifying queue type is not supported.")
    : valuesRefusal(attributes, isFifo)

const defaults: Attributes = {
  VisibilityTimeout: "30",
  DelaySeconds: "0",
  ReceiveMessageWaitTimeSeconds: "0",
  MaximumMessageSize: "1048576",
  MessageRetentionPeriod: "345600",
  SqsManagedSseEnabled: "true"
}

const fifoDefaults: Attributes = {
  FifoQueue: "true",
  ContentBasedDeduplication: "false",
  DeduplicationScope: "queue",
  FifoThroughputLimit: "perQueue"
}

/** Returns the attributes of a new queue. */
export const initial = (attributes: Attributes, isFifo: boolean): Attributes =>
  changed({ ...defaults, ...(isFifo ? fifoDefaults : {}) }, attributes)

/** Returns attributes after a change: an empty value removes one, and a key ends the encryption by SQS. */
export const changed = (before: Attributes, attributes: Attributes): Attributes => {
  const ends = (attributes["KmsMasterKeyId"] ?? "") === "" ? {} : { SqsManagedSseEnabled: "false" }
  const all: Attributes = { KmsDataKeyReusePeriodSeconds: "300", ...before, ...ends, ...attributes }
  const hasKey = (all["KmsMasterKeyId"] ?? "") !== ""
  return Object.fromEntries(
    Object.entries(all).filter(([name, value]) => value !== "" && (hasKey || !name.startsWith("Kms")))
  )
}
