/**
 * Converts an outgoing message to an entry of `SendMessageBatch`. Pure.
 *
 * https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_SendMessageBatchRequestEntry.html
 */
import { BrokerError, Digest, Metadata, type Outgoing } from "@requeue/core/port"
import * as Result from "effect/Result"
import type { MessageAttributeValue, SendEntry } from "../client.ts"
import * as Originals from "../consume/originals.ts"
import { textOf } from "../consume/toDelivery.ts"
import * as Limits from "../limits.ts"
import * as Native from "../native.ts"
import * as Wire from "../wire.ts"

type Attributes = Readonly<Record<string, MessageAttributeValue>>

interface Entry extends Omit<SendEntry, "Id"> {
  readonly MessageBody: string
}

/** An entry without its id in the batch. */
export interface Publication {
  readonly entry: Entry
  /** Bytes as SQS counts them. */
  readonly size: number
}

const refuse = (queue: string, reason: BrokerError.BrokerError["reason"], detail: string, remedy?: string) =>
  Result.fail(new BrokerError.BrokerError({ broker: "sqs", operation: "publish", queue, reason, detail, remedy }))

const notFifo = "the queue is not FIFO, because its name does not end in .fifo"
const illegalKey = "a key has 1 to 128 letters, digits and punctuation marks"

/**
 * Returns the entry of a message, or a `BrokerError` if SQS would refuse it. For a copy, `original` are the attributes
 * of its delivery, whose bytes and numbers keep their type, and `source` is SQS's id of that message.
 */
export const toPublication = (
  outgoing: Outgoing.Outgoing,
  fifo: boolean,
  original?: Attributes,
  source?: string
): Result.Result<Publication, BrokerError.BrokerError> => {
  const { delay, metadata, native, queue } = outgoing
  const asked = Native.nativeOptions.of(native)
  if (asked instanceof RangeError) return refuse(queue, "Unsupported", asked.message)
  const { fields, headers } = fieldsOf(outgoing.headers, fifo, original)
  const { deduplication, trace } = fields
  const { key = fields.group } = outgoing.place ?? {}
  if (isFirst(metadata) && outgoing.place !== undefined) {
    if (!fifo) return refuse(queue, "Unsupported", notFifo, "Send without key, or to a FIFO queue")
    if (!Wire.isLegalId(outgoing.place.key)) return refuse(queue, "Unsupported", illegalKey, "Use another key")
  }
  const illegal = isFirst(metadata) && original === undefined ? fields.illegal : undefined
  if (illegal !== undefined) {
    return refuse(
      queue,
      "Unsupported",
      `the header ${illegal} is not accepted by SQS: ${JSON.stringify(outgoing.headers[illegal]?.slice(0, 140))}`,
      "Use 1 to 128 letters, digits and punctuation marks"
    )
  }
  const body = Wire.encodeBody(outgoing.body)
  if (body.encoding === "base64" && isFirst(metadata) && outgoing.body.length > Limits.bodySize) {
    const detail = `the body is not text and has ${outgoing.body.length} bytes, the limit of binary bodies is ${Limits.bodySize}`
    return refuse(queue, "BodyTooLarge", detail, "Store the content elsewhere and send a reference to it")
  }
  const isCovered = delay > 0 && delay <= Limits.sendDelay && !fifo
  const entry: Entry = {
    MessageBody: body.text,
    MessageAttributes: attributes(
      asked === undefined ? headers : { ...headers, ...textsOf(asked) },
      isCovered ? { ...metadata, notBefore: 0 } : metadata,
      body.encoding,
      original ?? asked
    ),
    ...(delay > 0 && !fifo ? { DelaySeconds: Math.ceil(Math.min(delay, Limits.sendDelay) / 1000) } : {}),
    ...(fifo
      ? {
          MessageGroupId: key ?? Wire.defaultGroup,
          MessageDeduplicationId: deduplicationId(outgoing, deduplication, source)
        }
      : key === undefined
        ? {}
        : { MessageGroupId: key }),
    ...(trace === undefined ? {} : { MessageSystemAttributes: { AWSTraceHeader: text(trace) } })
  }
  const size = sizeOf(entry)
  if (size > Limits.size) {
    return refuse(
      queue,
      "BodyTooLarge",
      `body and headers have ${size} bytes as SQS counts them, the limit is ${Limits.size}`,
      "Store the content elsewhere and send a reference to it, as the codec ClaimCheck does"
    )
  }
  return Result.succeed({ entry, size })
}

/** Whether a message is published for the first time. */
const isFirst = ({ attempts, deadLetter, redrives, truncation }: Metadata.Metadata): boolean =>
  attempts === 0 && redrives === 0 && deadLetter === undefined && truncation === undefined

/**
 * Splits off the headers for which SQS has a field. A header that arrived as an attribute of a foreign producer, or
 * that is not legal in its field, stays an ordinary header.
 */
const fieldsOf = (all: Readonly<Record<string, string>>, fifo: boolean, original: Attributes = {}) => {
  const headers = { ...all }
  const take = (name: string, isLegal: (value: string) => boolean): string | undefined => {
    const value = headers[name]
    if (value === undefined || !isLegal(value)) return undefined
    const attribute = original[name]
    // In a FIFO queue every message has a group, which replaces an attribute of that name.
    if (!fifo && attribute !== undefined && textOf(attribute) === value) return undefined
    delete headers[name]
    return value
  }
  const group = take(Wire.headers.group, Wire.isLegalId)
  const deduplication = take(Wire.headers.deduplication, Wire.isLegalId)
  const trace = take(Wire.headers.trace, (value) => value !== "" && Wire.isLegalText(value))
  const illegal = [Wire.headers.group, Wire.headers.deduplication].find((name) => headers[name] !== undefined)
  return { headers, fields: { group, deduplication, trace, illegal } }
}

const rank = (attribute: MessageAttributeValue | undefined): number =>
  attribute === undefined || attribute.DataType === "String" ? 1 : 0

/** Returns attributes as headers. */
const textsOf = (attributes: Attributes): Readonly<Record<string, string>> =>
  Object.fromEntries(Object.entries(attributes).map(([name, attribute]) => [name, textOf(attribute)]))

const text = (value: string): MessageAttributeValue => ({ DataType: "String", StringValue: value })

/** Returns the attributes of a message. Headers become attributes while there is room; the others share one. */
const attributes = (
  headers: Readonly<Record<string, string>>,
  metadata: Metadata.Metadata,
  encoding: Wire.Encoding,
  original: Attributes = {}
): Record<string, MessageAttributeValue> => {
  const own = {
    [Metadata.header]: text(Wire.json(Metadata.encode(metadata))),
    ...(encoding === undefined ? {} : { [Wire.encodingAttribute]: text(encoding) })
  }
  // Non-text attributes come first: each must stay an attribute.
  const entries = Object.entries(headers).toSorted(([one], [other]) => rank(original[one]) - rank(original[other]))
  const legal = entries.filter(([name, value]) => Wire.isLegalAttribute(name, value))
  const room = Limits.attributes - Object.keys(own).length
  const alone = new Map(legal.length === entries.length && legal.length <= room ? legal : legal.slice(0, room - 1))
  const rest = entries.filter(([name]) => !alone.has(name))
  return {
    ...Object.fromEntries([...alone].map(([name, value]) => [name, typed(value, original[name])])),
    ...(rest.length === 0
      ? {}
      : { [Wire.headersAttribute]: text(Wire.json(JSON.stringify(Object.fromEntries(rest)))) }),
    ...own
  }
}

const typed = (value: string, original: MessageAttributeValue | undefined): MessageAttributeValue =>
  original !== undefined && textOf(original) === value ? original : text(value)

/**
 * Returns the deduplication id. SQS drops a message whose id it has seen within five minutes. So the id of a copy
 * identifies the SQS message and the number of the copy: the same copy is stored once, and never confused with another.
 * Metadata alone does not suffice: a parked letter has the metadata of its original, and several messages may have the
 * same id.
 *
 * https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/using-messagededuplicationid-property.html
 */
const deduplicationId = (
  { body, metadata }: Outgoing.Outgoing,
  given: string | undefined,
  original: string | undefined
): string => {
  const { attempts, deadLetter, id, operation = "", redrives } = metadata
  const source = original ?? Originals.sourceOf(body)
  const isCopy = source !== undefined || !isFirst(metadata)
  const which = `${operation}:${redrives}.${deadLetter === undefined ? attempts : `dead.${deadLetter.queue}`}`
  const name = isCopy ? `${source ?? Originals.named(body)}:${which}` : (given ?? id)
  return Wire.isLegalId(name) ? name : Digest.hex(name)
}

const bytes = (value: string | undefined): number => (value === undefined ? 0 : Buffer.byteLength(value))

const sizeOf = ({ MessageAttributes = {}, MessageBody }: Entry): number => {
  let size = bytes(MessageBody)
  for (const [name, { BinaryValue, DataType, StringValue }] of Object.entries(MessageAttributes)) {
    size += bytes(name) + bytes(DataType) + bytes(StringValue) + (BinaryValue?.length ?? 0)
  }
  return size
}
