/**
 * The rules of AWS for one message, which servers for tests do not check.
 * https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/quotas-messages.html
 */
import { isValidText } from "../text.ts"
import type { Attributes } from "./attributes.ts"
import { invalidParameter, missingParameter, named, type AwsError } from "./AwsError.ts"
import * as Call from "./Call.ts"

export const mebibyte = 1_048_576

export const outside = (name: string, value: number | undefined, min: number, max: number): AwsError | undefined => {
  if (value === undefined) return undefined
  if (!Number.isInteger(value)) {
    return { code: "SerializationException", message: `${name} must be an integer.`, status: 400 }
  }
  if (value >= min && value <= max) return undefined
  return invalidParameter(`Value ${value} for parameter ${name} is invalid. Reason: Must be between ${min} and ${max}.`)
}

const bytes = (text = ""): number => Buffer.byteLength(text)

/** The size of a message: of its body, and of its attributes' names, types and values. */
export const sizeOf = ({ MessageAttributes = {}, MessageBody }: Call.Entry): number =>
  Object.entries(MessageAttributes).reduce(
    (sum, [name, { BinaryValue = "", DataType, StringValue }]) =>
      sum + bytes(name) + bytes(DataType) + bytes(StringValue) + Buffer.from(BinaryValue, "base64").length,
    bytes(MessageBody)
  )

const attributeRefused = (name: string, { BinaryValue, DataType = "", StringValue }: Call.Attribute) => {
  const about = `Message (user) attribute '${name}'`
  // AWS documents A to Z, but accepts letters of all languages.
  if (!/^(?!aws\.|amazon\.|\.)(?!.*\.\.)[\p{L}\d_.-]{1,256}(?<!\.)$/iu.test(name)) {
    return invalidParameter(`${about} has an invalid name.`)
  }
  const [type = ""] = DataType.split(".")
  if (!["String", "Number", "Binary"].includes(type)) return invalidParameter(`${about} has an unknown type.`)
  if (DataType.length > 256) return invalidParameter(`The type of ${about} must have 256 characters at most.`)
  const value = type === "Binary" ? BinaryValue : StringValue
  if (value === undefined || value === "") {
    return invalidParameter(`${about} must contain a non-empty value of type '${type}'.`)
  }
  return isValidText(StringValue ?? "") ? undefined : invalidParameter(`${about} contains invalid characters.`)
}

const groupOrId = (name: string, value: string | undefined): AwsError | undefined => {
  if (value === undefined || /^[\x21-\x7e]{1,128}$/.test(value)) return undefined
  const reason = `${name} can only include alphanumeric and punctuation characters. 1 to 128 in length.`
  return invalidParameter(`Value ${value} for parameter ${name} is invalid. Reason: ${reason}`)
}

/** Why AWS rejects a whole call with a message that lacks what a FIFO queue needs; `undefined` if it does not. */
export const fifoRefused = (call: Call.Call, queue: Attributes): AwsError | undefined => {
  if (!Call.isFifo(call) || Call.single(call) !== "SendMessage") return undefined
  const missing = missingParameter("MessageGroupId")
  for (const { MessageDeduplicationId, MessageGroupId } of Call.entriesOf(call)) {
    if (MessageGroupId === undefined) return Call.isBatch(call) ? invalidParameter(missing.message) : missing
    if (MessageDeduplicationId === undefined && queue["ContentBasedDeduplication"] !== "true") {
      const either = "The queue should either have ContentBasedDeduplication enabled"
      return invalidParameter(`${either} or MessageDeduplicationId provided explicitly`)
    }
  }
  return undefined
}

const sendRefused = (entry: Call.Entry, call: Call.Call, queue: Attributes): AwsError | undefined => {
  const { DelaySeconds, MessageAttributes = {}, MessageBody = "", MessageDeduplicationId, MessageGroupId } = entry
  const count = Object.keys(MessageAttributes).length
  const limit = Number(queue["MaximumMessageSize"] ?? mebibyte)
  if (MessageBody === "") return missingParameter("MessageBody")
  if (!isValidText(MessageBody)) return named("InvalidMessageContents")
  if (sizeOf(entry) > limit) {
    const about = `One or more parameters ${Call.isBatch(call) ? "cannot be validated" : "are invalid"}.`
    return invalidParameter(`${about} Reason: Message must be shorter than ${limit} bytes.`)
  }
  if (count > 10) {
    return invalidParameter(`Number of message attributes [${count}] exceeds the allowed maximum [10].`)
  }
  for (const [name, attribute] of Object.entries(MessageAttributes)) {
    const refused = attributeRefused(name, attribute)
    if (refused !== undefined) return refused
  }
  if (Call.isFifo(call) && (DelaySeconds ?? 0) !== 0) {
    const reason = "The request include parameter that is not valid for this queue type."
    return invalidParameter(`Value ${DelaySeconds} for parameter DelaySeconds is invalid. Reason: ${reason}`)
  }
  return (
    outside("DelaySeconds", DelaySeconds, 0, 900) ??
    groupOrId("MessageGroupId", MessageGroupId) ??
    groupOrId("MessageDeduplicationId", MessageDeduplicationId)
  )
}

type Refuses = (entry: Call.Entry, call: Call.Call, queue: Attributes) => AwsError | undefined

const entryRules: Readonly<Record<string, Refuses>> = {
  SendMessage: sendRefused,
  DeleteMessage: ({ ReceiptHandle }) => (ReceiptHandle === undefined ? missingParameter("ReceiptHandle") : undefined),
  ChangeMessageVisibility: ({ ReceiptHandle, VisibilityTimeout }) => {
    if (ReceiptHandle === undefined) return missingParameter("ReceiptHandle")
    if (VisibilityTimeout === undefined) return missingParameter("VisibilityTimeout")
    return outside("VisibilityTimeout", VisibilityTimeout, 0, 43_200)
  }
}

/** Returns why AWS rejects one message of a call, to a queue with these attributes; `undefined` if it does not. */
export const entryRefused = (call: Call.Call, entry: Call.Entry, queue: Attributes = {}): AwsError | undefined =>
  entryRules[Call.single(call)]?.(entry, call, queue)
