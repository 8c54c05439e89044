/** The rules of AWS for new queues and attributes, which servers for tests do not check. */
import { invalidAttributeName, invalidParameter, type AwsError } from "./AwsError.ts"
import * as Call from "./Call.ts"

/** https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_SetQueueAttributes.html */
const ranges: Readonly<Record<string, readonly [min: number, max: number]>> = {
  DelaySeconds: [0, 900],
  MaximumMessageSize: [1024, 1_048_576],
  MessageRetentionPeriod: [60, 1_209_600],
  ReceiveMessageWaitTimeSeconds: [0, 20],
  VisibilityTimeout: [0, 43_200],
  KmsDataKeyReusePeriodSeconds: [60, 86_400]
}

const known = new Set([
  ...Object.keys(ranges),
  "Policy",
  "RedrivePolicy",
  "RedriveAllowPolicy",
  "KmsMasterKeyId",
  "SqsManagedSseEnabled",
  "FifoQueue",
  "ContentBasedDeduplication",
  "DeduplicationScope",
  "FifoThroughputLimit"
])

const invalidValue = (name: string, reason = ""): AwsError => ({
  code: "InvalidAttributeValue",
  message: `Invalid value for the parameter ${name}.${reason}`,
  status: 400
})

export const jsonOf = (text = ""): { readonly [name: string]: unknown } | undefined => {
  try {
    const value: { readonly [name: string]: unknown } = JSON.parse(text)
    return value
  } catch {
    return undefined
  }
}

const redriveRefused = (text: string): AwsError | undefined => {
  if (text === "") return undefined
  const count = Number(jsonOf(text)?.["maxReceiveCount"])
  const about = `Value ${text} for parameter RedrivePolicy is invalid. Reason: `
  if (jsonOf(text)?.["deadLetterTargetArn"] === undefined)
    return invalidParameter(`${about}deadLetterTargetArn is missing.`)
  if (Number.isInteger(count) && count >= 1 && count <= 1000) return undefined
  return invalidParameter(`${about}Invalid value for maxReceiveCount: ${count}, valid values are from 1 to 1000.`)
}

const isTrue = (text = ""): boolean => text.toLowerCase() === "true"

const unknown = (call: Call.Call): AwsError | undefined => {
  const { Attributes = {} } = call.body
  for (const name of Object.keys(Attributes)) {
    if (!known.has(name)) return invalidAttributeName(`Unknown Attribute ${name}.`)
    if (Call.isFifo(call) || isTrue(Attributes["FifoQueue"])) continue
    if (name === "DeduplicationScope" || name === "FifoThroughputLimit")
      return invalidAttributeName(`You can specify the ${name} only when FifoQueue is set to true.`)
    if (name === "FifoQueue" || name === "ContentBasedDeduplication")
      return invalidAttributeName(`Unknown Attribute ${name}.`)
  }
  return undefined
}

export const attributesRefused = (call: Call.Call): AwsError | undefined => {
  const { Attributes = {} } = call.body
  const refused = unknown(call)
  if (refused !== undefined) return refused
  for (const [name, text] of Object.entries(Attributes)) {
    const [min, max] = ranges[name] ?? [-Infinity, Infinity]
    const value = Number(text)
    if (ranges[name] !== undefined && !(Number.isInteger(value) && value >= min && value <= max)) {
      return invalidValue(name)
    }
  }
  if ((Attributes["KmsMasterKeyId"] ?? "") !== "" && isTrue(Attributes["SqsManagedSseEnabled"])) {
    const one = "You can use one type of server-side encryption (SSE) at one time."
    return invalidAttributeName(`${one} You can either enable KMS SSE or SQS SSE.`)
  }
  return redriveRefused(Attributes["RedrivePolicy"] ?? "")
}

/** Returns why AWS rejects new attributes of an existing queue. */
export const changeRefused = (call: Call.Call): AwsError | undefined => {
  const { FifoQueue } = call.body.Attributes ?? {}
  if (FifoQueue === undefined) return attributesRefused(call)
  if (!Call.isFifo(call)) return invalidAttributeName("Unknown Attribute FifoQueue.")
  return isTrue(FifoQueue)
    ? attributesRefused(call)
    : invalidValue("FifoQueue", " Reason: Modifying queue type is not supported.")
}

/** https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_CreateQueue.html */
export const nameRefused = ({ body: { Attributes = {}, QueueName = "" } }: Call.Call): AwsError | undefined => {
  const characters = "Can only include alphanumeric characters, hyphens, or underscores. 1 to 80 in length"
  if (isTrue(Attributes["FifoQueue"])) {
    return /^[\w-]{1,75}\.fifo$/.test(QueueName)
      ? undefined
      : invalidParameter("The name of a FIFO queue must end with the .fifo suffix. Its characters: " + characters)
  }
  return /^[\w-]{1,80}$/.test(QueueName) ? undefined : invalidParameter(characters)
}
