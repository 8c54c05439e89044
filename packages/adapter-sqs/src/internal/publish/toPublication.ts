/** From an outgoing message to an entry of `SendMessageBatch`. Pure. */
import { BrokerError, Metadata, type Outgoing } from "@requeue/core/adapter-kit"
import * as Result from "effect/Result"
import * as Body from "../body.ts"
import type { MessageAttributeValue, SendEntry } from "../client.ts"
import { digest } from "../digest.ts"
import { textOf } from "../consume/toDelivery.ts"
import * as Wire from "../wire.ts"

type Attributes = Readonly<Record<string, MessageAttributeValue>>

interface Entry extends Omit<SendEntry, "Id"> {
  readonly MessageBody: string
}

export interface Sized {
  readonly entry: Entry
  /** Bytes by which SQS counts. */
  readonly size: number
}

const refuse = (queue: string, reason: BrokerError.BrokerError["reason"], detail: string, remedy: string) =>
  Result.fail(new BrokerError.BrokerError({ broker: "sqs", operation: "publish", queue, reason, detail, remedy }))

/**
 * `original` are the attributes of the delivery that this is a copy of: those that are no text stay what they are.
 */
export const toEntry = (
  outgoing: Outgoing.Outgoing,
  fifo: boolean,
  original: Attributes = {}
): Result.Result<Sized, BrokerError.BrokerError> => {
  const { delay, metadata, queue } = outgoing
  const {
    [Wire.headers.deduplication]: deduplication,
    [Wire.headers.group]: group,
    [Wire.headers.trace]: trace,
    ...headers
  } = outgoing.headers
  for (const [name, id] of [
    [Wire.headers.group, group],
    [Wire.headers.deduplication, deduplication]
  ]) {
    if (id === undefined || Wire.isLegalId(id)) continue
    return refuse(
      queue,
      "Unsupported",
      `the header ${name} is none that SQS takes: ${JSON.stringify(id.slice(0, 140))}`,
      "Use 1 to 128 letters, digits and punctuation marks"
    )
  }
  const body = Body.encode(outgoing.body)
  const isCovered = delay > 0 && delay <= Wire.longestDelay && !fifo
  const entry: Entry = {
    MessageBody: body.text,
    MessageAttributes: attributes(
      headers,
      isCovered ? { ...metadata, notBefore: 0 } : metadata,
      body.encoding,
      original
    ),
    ...(delay > 0 && !fifo ? { DelaySeconds: Math.ceil(Math.min(delay, Wire.longestDelay) / 1000) } : {}),
    ...(fifo
      ? {
          MessageGroupId: group ?? Wire.defaultGroup,
          MessageDeduplicationId: deduplicationId(metadata, deduplication)
        }
      : group === undefined
        ? {}
        : { MessageGroupId: group }),
    ...(trace === undefined || !Wire.isLegalText(trace) || trace === ""
      ? {}
      : { MessageSystemAttributes: { AWSTraceHeader: text(trace) } })
  }
  const size = sizeOf(entry)
  if (size > Wire.sizeLimit) {
    return refuse(
      queue,
      "BodyTooLarge",
      `body and headers have ${size} bytes as SQS counts them, the limit is ${Wire.sizeLimit}`,
      "Store the content elsewhere and send a reference to it"
    )
  }
  return Result.succeed({ entry, size })
}

const text = (value: string): MessageAttributeValue => ({ DataType: "String", StringValue: value })

/** Headers become attributes while there is room for them; the others share one. */
const attributes = (
  headers: Readonly<Record<string, string>>,
  metadata: Metadata.Metadata,
  encoding: Body.Encoding,
  original: Attributes
): Record<string, MessageAttributeValue> => {
  const own = {
    [Metadata.header]: text(Wire.json(Metadata.encode(metadata))),
    ...(encoding === undefined ? {} : { [Wire.encodingAttribute]: text(encoding) })
  }
  const entries = Object.entries(headers)
  const legal = entries.filter(([name, value]) => Wire.isLegalAttribute(name, value))
  const room = Wire.attributeLimit - Object.keys(own).length
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
 * SQS drops a message whose id it has seen within five minutes: what is sent once more on purpose, as a retry, a dead
 * letter or a redrive, has one of its own.
 */
const deduplicationId = (
  { attempts, deadLetter, id, redrives }: Metadata.Metadata,
  given: string | undefined
): string => {
  const first = given ?? id
  const name =
    attempts === 0 && redrives === 0 && deadLetter === undefined
      ? first
      : `${first}:${redrives}.${deadLetter === undefined ? attempts : `dead.${deadLetter.queue}`}`
  return Wire.isLegalId(name) ? name : digest(name)
}

const bytes = (value: string | undefined): number => (value === undefined ? 0 : Buffer.byteLength(value))

const sizeOf = ({ MessageAttributes = {}, MessageBody }: Entry): number => {
  let size = bytes(MessageBody)
  for (const [name, { BinaryValue, DataType, StringValue }] of Object.entries(MessageAttributes)) {
    size += bytes(name) + bytes(DataType) + bytes(StringValue) + (BinaryValue?.length ?? 0)
  }
  return size
}
