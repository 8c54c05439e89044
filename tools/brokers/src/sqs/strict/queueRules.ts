/** The rules of AWS for new queues and attributes, which servers for tests do not check. */
import { invalidParameter, type AwsError } from "./AwsError.ts"
import type * as Call from "./Call.ts"

/** https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_SetQueueAttributes.html */
const ranges: Readonly<Record<string, readonly [min: number, max: number]>> = {
  DelaySeconds: [0, 900],
  MaximumMessageSize: [1024, 1_048_576],
  MessageRetentionPeriod: [60, 1_209_600],
  ReceiveMessageWaitTimeSeconds: [0, 20],
  VisibilityTimeout: [0, 43_200],
  KmsDataKeyReusePeriodSeconds: [60, 86_400]
}

const jsonOf = (text: string): { readonly [name: string]: unknown } | undefined => {
  try {
    const value: { readonly [name: string]: unknown } = JSON.parse(text)
    return value
  } catch {
    return undefined
  }
}

/** Answers the dead-letter queue that a call's attributes name. */
export const deadLetterTarget = ({ body: { Attributes } }: Call.Call): string | undefined =>
  String(jsonOf(Attributes?.["RedrivePolicy"] ?? "")?.["deadLetterTargetArn"] ?? "")
    .split(":")
    .at(-1) || undefined

const redriveRefused = (text: string): AwsError | undefined => {
  if (text === "") return undefined
  const count = Number(jsonOf(text)?.["maxReceiveCount"])
  const about = `Value ${text} for parameter RedrivePolicy is invalid. Reason: `
  if (jsonOf(text)?.["deadLetterTargetArn"] === undefined)
    return invalidParameter(`${about}deadLetterTargetArn is missing.`)
  if (Number.isInteger(count) && count >= 1 && count <= 1000) return undefined
  return invalidParameter(`${about}Invalid value for maxReceiveCount: ${count}, valid values are from 1 to 1000.`)
}

export const attributesRefused = ({ Attributes = {} }: Call.Body): AwsError | undefined => {
  for (const [name, text] of Object.entries(Attributes)) {
    const [min, max] = ranges[name] ?? [-Infinity, Infinity]
    const value = Number(text)
    if (ranges[name] !== undefined && !(Number.isInteger(value) && value >= min && value <= max)) {
      return { code: "InvalidAttributeValue", message: `Invalid value for the parameter ${name}.`, status: 400 }
    }
  }
  return redriveRefused(Attributes["RedrivePolicy"] ?? "")
}

/** https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_CreateQueue.html */
export const nameRefused = ({ QueueName = "" }: Call.Body): AwsError | undefined =>
  /^[\w-]{1,80}$/.test(QueueName) || /^[\w-]{1,75}\.fifo$/.test(QueueName)
    ? undefined
    : invalidParameter("Can only include alphanumeric characters, hyphens, or underscores. 1 to 80 in length")
