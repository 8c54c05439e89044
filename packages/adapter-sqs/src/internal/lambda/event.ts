/**
 * The event that an event source mapping gives to a function, and its records as messages of SQS. Pure.
 *
 * https://docs.aws.amazon.com/lambda/latest/dg/with-sqs.html
 */
import { ConfigurationError } from "@requeue/core/adapter-kit"
import * as Result from "effect/Result"
import type { Message, MessageAttributeValue } from "../client.ts"

/** One attribute of a message. */
export interface SqsMessageAttribute {
  readonly dataType: string
  readonly stringValue?: string | undefined
  /** In base64. */
  readonly binaryValue?: string | undefined
}

/** One message of the event. */
export interface SqsRecord {
  readonly messageId: string
  readonly receiptHandle: string
  readonly body: string
  readonly attributes: {
    readonly ApproximateReceiveCount: string
    readonly SentTimestamp: string
    readonly ApproximateFirstReceiveTimestamp?: string | undefined
    readonly MessageGroupId?: string | undefined
    readonly AWSTraceHeader?: string | undefined
    readonly DeadLetterQueueSourceArn?: string | undefined
  }
  readonly messageAttributes?: { readonly [name: string]: SqsMessageAttribute } | undefined
  readonly eventSourceARN: string
}

/** The event that the event source mapping of an SQS queue gives to its function. */
export interface SqsEvent {
  readonly Records: ReadonlyArray<SqsRecord>
}

const isText = (value: unknown): value is string => typeof value === "string" && value !== ""

/** The first fault of a record. Without its count of receives, every attempt would be the first. */
const faultOf = (record: SqsRecord, queueName: string): readonly [field: string, detail: string] | undefined => {
  if (typeof record !== "object" || record === null) return ["", "it is no record"]
  const { attributes, body, eventSourceARN: arn, messageId, receiptHandle } = record
  if (!isText(messageId)) return [".messageId", "it is empty, and an answer could not name it"]
  if (!isText(receiptHandle)) return [".receiptHandle", "it is empty"]
  if (typeof body !== "string") return [".body", "it is no text"]
  if (!(Number(attributes?.ApproximateReceiveCount) >= 1))
    return [".attributes.ApproximateReceiveCount", "it is no number"]
  if (isText(arn) && arn.slice(arn.lastIndexOf(":") + 1) === queueName) return undefined
  return [".eventSourceARN", `it is ${String(arn)}, the handler is for the queue ${queueName}`]
}

/**
 * The messages of an event from the queue of this name.
 *
 * An event with a record that cannot be read is refused as a whole, so that all its messages come again. Else Lambda
 * would delete the message of that record, since the response could not name it.
 */
export const toMessages = (
  event: SqsEvent,
  queueName: string
): Result.Result<ReadonlyArray<Message>, ConfigurationError.ConfigurationError> => {
  const refuse = (field: string, detail: string): Result.Result<never, ConfigurationError.ConfigurationError> =>
    Result.fail(
      new ConfigurationError.ConfigurationError({
        broker: "sqs",
        field: `event.${field}`,
        detail,
        remedy: `Map the function to the SQS queue ${queueName}, and to nothing else`
      })
    )
  const records: unknown = event?.Records
  if (!Array.isArray(records)) return refuse("Records", "it is no list")
  for (const [index, record] of event.Records.entries()) {
    const fault = faultOf(record, queueName)
    if (fault !== undefined) return refuse(`Records[${index}]${fault[0]}`, fault[1])
  }
  return Result.succeed(event.Records.map(toMessage))
}

const toMessage = ({ attributes, body, messageAttributes = {}, messageId, receiptHandle }: SqsRecord): Message => ({
  MessageId: messageId,
  ReceiptHandle: receiptHandle,
  Body: body,
  Attributes: Object.fromEntries(Object.entries(attributes).filter(([, value]) => isText(value))),
  MessageAttributes: Object.fromEntries(
    Object.entries(messageAttributes).map(([name, value]) => [name, toAttribute(value)])
  )
})

const toAttribute = ({ binaryValue, dataType, stringValue }: SqsMessageAttribute): MessageAttributeValue => ({
  DataType: dataType,
  ...(isText(stringValue) ? { StringValue: stringValue } : {}),
  ...(isText(binaryValue) ? { BinaryValue: Buffer.from(binaryValue, "base64") } : {})
})
