/**
 * The event of an event source mapping, and its records as SQS messages. Pure.
 *
 * https://docs.aws.amazon.com/lambda/latest/dg/with-sqs.html
 */
import { ConfigurationError } from "@requeue/core/port"
import type { Message } from "../client.ts"
import { attributesIn } from "../consume/received.ts"
import { fromBase64 } from "../wire.ts"

/** One attribute of a message. */
export interface SqsMessageAttribute {
  readonly dataType: string
  readonly stringValue?: string | undefined
  /** Base64. */
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
  readonly messageAttributes?: { readonly [name: string]: SqsMessageAttribute } | null | undefined
  readonly eventSourceARN: string
}

/** The event that the event source mapping of an SQS queue gives to its function. */
export interface SqsEvent {
  readonly Records: ReadonlyArray<SqsRecord>
}

const isText = (value: unknown): value is string => typeof value === "string" && value !== ""

/** The queue that a function handles. Queues of other accounts and regions have the same names. */
export interface Source {
  readonly name: string
  readonly region: string
  /** `undefined` if unknown. */
  readonly account: string | undefined
}

const isOf = (arn: string, { account, name, region }: Source): boolean => {
  // The partition is not compared: it follows from the region.
  const [, , service, foundRegion, foundAccount, found] = arn.split(":")
  const isQueue = service === "sqs" && found === name && foundRegion === region
  return isQueue && (account === undefined || foundAccount === account)
}

const told = ({ account, name, region }: Source): string =>
  `${name} of ${account === undefined ? "" : `account ${account} in `}${region}`

/** Returns the first fault of a record. Without its receive count, every attempt would be the first. */
const faultOf = (record: SqsRecord, source: Source): readonly [field: string, detail: string] | undefined => {
  if (typeof record !== "object" || record === null) return ["", "the value is not a record"]
  const { attributes, body, eventSourceARN: arn, messageId, receiptHandle } = record
  if (!isText(messageId)) return [".messageId", "the id is empty, so the response could not name the message"]
  if (!isText(receiptHandle)) return [".receiptHandle", "the value is empty"]
  if (typeof body !== "string") return [".body", "the value is not text"]
  if (!(Number(attributes?.ApproximateReceiveCount) >= 1))
    return [".attributes.ApproximateReceiveCount", "the value is not a number"]
  if (isText(arn) && isOf(arn, source)) return undefined
  return [".eventSourceARN", `the ARN is ${String(arn)}, but the handler is for the queue ${told(source)}`]
}

/**
 * Returns why an event is refused; `undefined` for a valid event from this queue.
 *
 * An event with an unreadable record is refused as a whole, and all its messages are redelivered. Otherwise Lambda
 * would delete the message of that record, since the response could not name it.
 */
export const refusal = (event: SqsEvent, source: Source): ConfigurationError.ConfigurationError | undefined => {
  const refuse = (field: string, detail: string) =>
    new ConfigurationError.ConfigurationError({
      broker: "sqs",
      field: `event.${field}`,
      detail,
      remedy: `Map the function to the SQS queue ${source.name}, and to nothing else; or name the handler's queue by its ARN`
    })
  const records: unknown = event?.Records
  if (!Array.isArray(records)) return refuse("Records", "the value is not a list")
  for (const [index, record] of event.Records.entries()) {
    const fault = faultOf(record, source)
    if (fault !== undefined) return refuse(`Records[${index}]${fault[0]}`, fault[1])
  }
  return undefined
}

/** Returns the messages of a valid event. */
export const toMessages = ({ Records }: SqsEvent): ReadonlyArray<Message> => Records.map(toMessage)

const toMessage = ({ attributes, body, messageAttributes, messageId, receiptHandle }: SqsRecord): Message => ({
  MessageId: messageId,
  ReceiptHandle: receiptHandle,
  Body: body,
  Attributes: Object.fromEntries(Object.entries(attributes).filter(([, value]) => isText(value))),
  MessageAttributes: attributesIn(messageAttributes, toAttribute)
})

/** Converts an attribute to SQS's form. Bytes that are not valid base64 are kept as text. */
const toAttribute = ({ binaryValue, dataType, stringValue }: Partial<Record<keyof SqsMessageAttribute, unknown>>) => {
  const bytes = isText(binaryValue) ? fromBase64(binaryValue) : undefined
  if (isText(binaryValue) && bytes === undefined) return { DataType: "String", StringValue: binaryValue }
  return {
    DataType: dataType,
    ...(isText(stringValue) ? { StringValue: stringValue } : {}),
    ...(bytes === undefined ? {} : { BinaryValue: bytes })
  }
}
