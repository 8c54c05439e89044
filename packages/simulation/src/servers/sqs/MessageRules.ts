/**
 * The rules for one message of a call.
 *
 * | rule | source |
 * | --- | --- |
 * | a message has 1 byte to 1 MiB with its attributes, or to the queue's MaximumMessageSize | https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/quotas-messages.html |
 * | a text has the characters of XML 1.0 | https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_SendMessage.html |
 * | a message has 10 attributes with names, types and values that are not empty | https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-message-metadata.html |
 * | names have letters of all languages | test_send_message_with_invalid_string_attributes of LocalStack |
 * | a delay is a whole number of 0 to 900 s; a FIFO queue delays no single message | https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_SendMessage.html |
 * | groups and deduplication ids have 1 to 128 letters, digits and punctuation | same page |
 * | visibility is a whole number of 0 to 43,200 s | https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_ChangeMessageVisibility.html |
 */
import type * as Api from "./Api.ts"
import { type AwsError, invalidParameter, invalidValue, missingParameter, named, outside } from "./AwsError.ts"

/** Bytes of the largest message and batch. */
export const mebibyte = 1_048_576

const legalText = /^[\t\n\r\u{20}-\u{D7FF}\u{E000}-\u{FFFD}\u{10000}-\u{10FFFF}]*$/u

const bytes = (text = ""): number => Buffer.byteLength(text)

/** Returns the bytes of a message: of its body, and of its attributes' names, types and values. */
export const sizeOf = ({ MessageAttributes = {}, MessageBody }: Api.Entry): number =>
  Object.entries(MessageAttributes).reduce(
    (sum, [name, { BinaryValue, DataType, StringValue }]) =>
      sum + bytes(name) + bytes(DataType) + bytes(StringValue) + (BinaryValue?.length ?? 0),
    bytes(MessageBody)
  )

const attributeRefusal = (
  name: string,
  { BinaryValue, DataType = "", StringValue }: Api.Attribute
): AwsError | undefined => {
  const about = `Message (user) attribute '${name}'`
  if (!/^(?!aws\.|amazon\.|\.)(?!.*\.\.)[\p{L}\d_.-]{1,256}(?<!\.)$/iu.test(name)) {
    return invalidParameter(`${about} has an invalid name.`)
  }
  const [type = ""] = DataType.split(".")
  if (!["String", "Number", "Binary"].includes(type)) return invalidParameter(`${about} has an unknown type.`)
  if (DataType.length > 256) return invalidParameter(`The type of ${about} must have 256 characters at most.`)
  if (
    (type === "Binary" ? BinaryValue : StringValue)?.length === undefined ||
    (BinaryValue ?? StringValue)?.length === 0
  )
    return invalidParameter(`${about} must contain a non-empty value of type '${type}'.`)
  return legalText.test(StringValue ?? "") ? undefined : invalidParameter(`${about} contains invalid characters.`)
}

const attributesRefusal = (attributes: Readonly<Record<string, Api.Attribute>>): AwsError | undefined => {
  const all = Object.entries(attributes)
  if (all.length > 10)
    return invalidParameter(`Number of message attributes [${all.length}] exceeds the allowed maximum [10].`)
  for (const [name, attribute] of all) {
    const refused = attributeRefusal(name, attribute)
    if (refused !== undefined) return refused
  }
  return undefined
}

const idRefusal = (name: string, value: string | undefined): AwsError | undefined =>
  value === undefined || /^[\x21-\x7e]{1,128}$/.test(value)
    ? undefined
    : invalidValue(name, value, `${name} can only include alphanumeric and punctuation characters. 1 to 128 in length.`)

/** Returns why SQS refuses a message of a batch; `undefined` if it does not. */
export const sendRefusal = (
  entry: Api.Entry,
  { isFifo, maxSize }: { readonly isFifo: boolean; readonly maxSize: number }
): AwsError | undefined => {
  const { DelaySeconds, MessageAttributes = {}, MessageBody = "", MessageDeduplicationId, MessageGroupId } = entry
  if (MessageBody === "") return missingParameter("MessageBody")
  if (!legalText.test(MessageBody)) return named.InvalidMessageContents
  if (sizeOf(entry) > maxSize) {
    const about = "One or more parameters cannot be validated."
    return invalidParameter(`${about} Reason: Message must be shorter than ${maxSize} bytes.`)
  }
  const refused = attributesRefusal(MessageAttributes)
  if (refused !== undefined) return refused
  if (isFifo && (DelaySeconds ?? 0) !== 0) {
    const reason = "The request include parameter that is not valid for this queue type."
    return invalidValue("DelaySeconds", DelaySeconds, reason)
  }
  return (
    outside("DelaySeconds", DelaySeconds, 0, 900) ??
    idRefusal("MessageGroupId", MessageGroupId) ??
    idRefusal("MessageDeduplicationId", MessageDeduplicationId)
  )
}

/** Returns why SQS refuses to delete a message or to change its visibility, without a look at the message. */
export const receiptRefusal = (
  { ReceiptHandle, VisibilityTimeout }: Api.Entry,
  deletes: boolean
): AwsError | undefined => {
  if (ReceiptHandle === undefined) return missingParameter("ReceiptHandle")
  if (deletes) return undefined
  if (VisibilityTimeout === undefined) return missingParameter("VisibilityTimeout")
  return outside("VisibilityTimeout", VisibilityTimeout, 0, 43_200)
}
