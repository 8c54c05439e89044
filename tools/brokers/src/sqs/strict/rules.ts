/**
 * The rules of AWS that depend on the call alone, which servers for tests do not check.
 * https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/quotas-messages.html
 */
import { isValidText } from "../text.ts"
import { invalidParameter, missingParameter, named, type AwsError } from "./AwsError.ts"
import * as Call from "./Call.ts"
import { attributesRefused, nameRefused } from "./queueRules.ts"

const mebibyte = 1_048_576

const outside = (name: string, value: number | undefined, min: number, max: number): AwsError | undefined => {
  if (value === undefined) return undefined
  if (!Number.isInteger(value)) {
    return { code: "SerializationException", message: `${name} must be an integer.`, status: 400 }
  }
  if (value >= min && value <= max) return undefined
  return invalidParameter(`Value ${value} for parameter ${name} is invalid. Reason: Must be between ${min} and ${max}.`)
}

const bytes = (text = ""): number => Buffer.byteLength(text)

/** The size of a message: of its body, and of its attributes' names, types and values. */
const sizeOf = ({ MessageAttributes = {}, MessageBody }: Call.Entry): number =>
  Object.entries(MessageAttributes).reduce(
    (sum, [name, { BinaryValue = "", DataType, StringValue }]) =>
      sum + bytes(name) + bytes(DataType) + bytes(StringValue) + Buffer.from(BinaryValue, "base64").length,
    bytes(MessageBody)
  )

const attributeRefused = (name: string, { BinaryValue, DataType = "", StringValue }: Call.Attribute) => {
  const about = `Message (user) attribute '${name}'`
  if (!/^(?!aws\.|amazon\.|\.)(?!.*\.\.)[\w.-]{1,256}(?<!\.)$/i.test(name)) {
    return invalidParameter(`${about} has an invalid name.`)
  }
  if (!/^(String|Number|Binary)(\.|$)/.test(DataType)) return invalidParameter(`${about} has an unknown type.`)
  const value = DataType.startsWith("Binary") ? BinaryValue : StringValue
  if (value === undefined || value === "") return invalidParameter(`${about} must contain a non-empty value.`)
  return isValidText(StringValue ?? "") ? undefined : invalidParameter(`${about} contains invalid characters.`)
}

const groupOrId = (name: string, value: string | undefined): AwsError | undefined =>
  value === undefined || /^[\x21-\x7e]{1,128}$/.test(value)
    ? undefined
    : invalidParameter(`Value ${value} for parameter ${name} is invalid. Reason: 1 to 128 alphanumeric characters.`)

const sendRefused = (entry: Call.Entry, fifo: boolean): AwsError | undefined => {
  const { DelaySeconds, MessageAttributes = {}, MessageBody = "", MessageDeduplicationId, MessageGroupId } = entry
  const count = Object.keys(MessageAttributes).length
  if (MessageBody === "") return missingParameter("MessageBody")
  if (!isValidText(MessageBody)) return named("InvalidMessageContents")
  if (sizeOf(entry) > mebibyte) {
    return invalidParameter(
      `One or more parameters are invalid. Reason: Message must be shorter than ${mebibyte} bytes.`
    )
  }
  if (count > 10) {
    return invalidParameter(`Number of message attributes [${count}] exceeds the allowed maximum [10].`)
  }
  for (const [name, attribute] of Object.entries(MessageAttributes)) {
    const refused = attributeRefused(name, attribute)
    if (refused !== undefined) return refused
  }
  if (fifo && MessageGroupId === undefined) return missingParameter("MessageGroupId")
  if (fifo && (DelaySeconds ?? 0) !== 0) {
    const reason = "The request include parameter that is not valid for this queue type."
    return invalidParameter(`Value ${DelaySeconds} for parameter DelaySeconds is invalid. Reason: ${reason}`)
  }
  return (
    outside("DelaySeconds", DelaySeconds, 0, 900) ??
    groupOrId("MessageGroupId", MessageGroupId) ??
    groupOrId("MessageDeduplicationId", MessageDeduplicationId)
  )
}

const entryRules: Readonly<Record<string, (entry: Call.Entry, fifo: boolean) => AwsError | undefined>> = {
  SendMessage: sendRefused,
  DeleteMessage: ({ ReceiptHandle }) => (ReceiptHandle === undefined ? missingParameter("ReceiptHandle") : undefined),
  ChangeMessageVisibility: ({ ReceiptHandle, VisibilityTimeout }) => {
    if (ReceiptHandle === undefined) return missingParameter("ReceiptHandle")
    if (VisibilityTimeout === undefined) return missingParameter("VisibilityTimeout")
    return outside("VisibilityTimeout", VisibilityTimeout, 0, 43_200)
  }
}

/** Answers why AWS refuses one message of a call; `undefined` where it does not. */
export const entryRefused = (call: Call.Call, entry: Call.Entry): AwsError | undefined =>
  entryRules[Call.single(call)]?.(entry, Call.isFifo(call))

/** https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_SendMessageBatch.html */
const batchRefused = (call: Call.Call): AwsError | undefined => {
  const entries = Call.entriesOf(call)
  const ids = entries.map(({ Id = "" }) => Id)
  if (entries.length === 0) return named("EmptyBatchRequest")
  if (entries.length > 10) return named("TooManyEntriesInBatchRequest")
  if (!ids.every((id) => /^[\w-]{1,80}$/.test(id))) return named("InvalidBatchEntryId")
  if (new Set(ids).size < ids.length) return named("BatchEntryIdsNotDistinct")
  return entries.reduce((sum, entry) => sum + sizeOf(entry), 0) > mebibyte ? named("BatchRequestTooLong") : undefined
}

const receiveRefused = ({ MaxNumberOfMessages, VisibilityTimeout, WaitTimeSeconds }: Call.Body) =>
  outside("MaxNumberOfMessages", MaxNumberOfMessages, 1, 10) ??
  outside("VisibilityTimeout", VisibilityTimeout, 0, 43_200) ??
  outside("WaitTimeSeconds", WaitTimeSeconds, 0, 20)

/** Answers why AWS refuses a whole call; `undefined` where it does not. */
export const callRefused = (call: Call.Call): AwsError | undefined => {
  if (Call.isBatch(call)) return batchRefused(call)
  if (call.action === "ReceiveMessage") return receiveRefused(call.body)
  if (call.action === "SetQueueAttributes") return attributesRefused(call.body)
  return call.action === "CreateQueue" ? (nameRefused(call.body) ?? attributesRefused(call.body)) : undefined
}
