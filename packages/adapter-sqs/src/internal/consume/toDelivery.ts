/** Converts a received message to a delivery. Pure. Never fails: any message of a foreign producer can be consumed. */
import { Failure, Metadata } from "@requeue/core/port"
import * as Result from "effect/Result"
import type { MessageAttributeValue, Message as Received } from "../client.ts"
import type { FifoRetry } from "../../SqsOptions.ts"
import * as Names from "../names.ts"
import * as Wire from "../wire.ts"
import { receives } from "./receipt.ts"

/** Facts that are not in the message. */
export interface Context {
  /** Receives of this message that reached no handler. */
  readonly uncounted: number
  /** Its receives before SQS moved it to this queue. */
  readonly before: number
  /** Milliseconds since the epoch. */
  readonly now: number
  /** The program's name of the queue; a dead-letter queue's name may contain that of its source. */
  readonly queue?: string | undefined
  /** With `resend`, a group is not a key, because retries leave its order. Default: `block`. */
  readonly fifoRetry?: FifoRetry | undefined
}

/** A delivery without its receipt, its group and its native facts. */
export interface Decoded {
  readonly body: Uint8Array
  readonly headers: Readonly<Record<string, string>>
  readonly attempts: number
  readonly metadata: Metadata.Metadata
  readonly unreadable?: Metadata.ErrorSummary | undefined
}

/**
 * Decodes a message. Its attempts are those of the metadata and the receives of this copy that were counted. In a
 * dead-letter queue to which SQS has moved it, attempts start again. If decoding throws, the message is unreadable and
 * is dead-lettered with its bytes. An exception would end this process, and every process that receives the message
 * later.
 */
export const toDelivery = (message: Received, context: Context): Decoded => {
  try {
    return decoded(message, context)
  } catch (cause) {
    const { Body = "", MessageId = "sqs" } = message
    return {
      body: Buffer.from(Body),
      headers: Object.freeze({}),
      attempts: 1,
      metadata: Metadata.undated(MessageId.slice(0, Metadata.idLimit), context.now),
      unreadable: Failure.summarize(cause)
    }
  }
}

const decoded = (message: Received, context: Context): Decoded => {
  const { before, now, uncounted } = context
  const { MessageAttributes: attributes = {} } = message
  const encoded = attributes[Metadata.header]?.StringValue
  const known = encoded === undefined ? undefined : Metadata.decode(encoded, sentAt(message))
  const found = known ?? foreign(message, now)
  const metadata = movedBySqs(message, found, context)
  return {
    ...bodyOf(message.Body, attributes[Wire.encodingAttribute]?.StringValue),
    headers: headersOf(message, attributes),
    attempts: metadata.attempts + Math.max(1, receives(message) - before - uncounted),
    metadata
  }
}

/**
 * Decodes a body. If it does not match its encoding, the body is the text itself: a partial result would lose the rest.
 */
const bodyOf = (text: string | undefined, encoding: string | undefined): Pick<Decoded, "body" | "unreadable"> => {
  const body = text === undefined ? undefined : Wire.decodeBody(text, encoding)
  if (body !== undefined) return { body }
  const found = text === undefined ? "it has no text" : `${Wire.encodingAttribute} is ${encoding}, and its text is not`
  return {
    body: Buffer.from(text ?? ""),
    unreadable: { name: "UnreadableBody", message: `the body cannot be read: ${found}` }
  }
}

const foreign = (message: Received, now: number): Metadata.Metadata => {
  const id = (message.MessageId ?? "sqs").slice(0, Metadata.idLimit)
  const sent = sentAt(message)
  return sent === undefined ? Metadata.undated(id, now) : Metadata.make(id, sent)
}

/** Returns when SQS stored the message, in milliseconds since the epoch by SQS's clock. */
const sentAt = ({ Attributes }: Received): number | undefined => {
  const sent = Number(Attributes?.SentTimestamp)
  return Number.isSafeInteger(sent) && sent > 0 ? sent : undefined
}

/** Returns the program's name of a source: `orders.eu` for `orders-eu` in `orders.eu.dlq`. */
const named = (source: string, queue = ""): string => {
  const home = queue.replace(/\.dlq(\.parked)?$/, "")
  return Result.match(Names.parse(home), {
    onFailure: () => source,
    onSuccess: ({ name }) => (name === source ? home : source)
  })
}

/** Returns the metadata of a dead letter that SQS has moved here; the message contains only its source. */
const movedBySqs = (
  { Attributes }: Received,
  metadata: Metadata.Metadata,
  { before, now, queue }: Context
): Metadata.Metadata => {
  const source = Attributes?.DeadLetterQueueSourceArn
  if (source === undefined) return metadata
  const received = Number(Attributes?.ApproximateFirstReceiveTimestamp)
  const deadLetter: Metadata.DeadLetter = {
    queue: named(source.slice(source.lastIndexOf(":") + 1), queue),
    attempts: metadata.attempts + before,
    reason: "retries-exhausted",
    at: received > 0 ? received : now,
    error: { name: "NativeRedrive", message: "moved by SQS: received more often than its redrive policy allows" }
  }
  return { ...metadata, attempts: 0, deadLetter: metadata.deadLetter ?? deadLetter }
}

const noHeaders: Readonly<Record<string, string>> = Object.freeze({})

const headersOf = (
  { Attributes: system = {} }: Received,
  attributes: Readonly<Record<string, MessageAttributeValue>>
): Readonly<Record<string, string>> => {
  const { AWSTraceHeader: trace, MessageGroupId: group } = system
  const isBare = trace === undefined && group === undefined && !Wire.hasHeaders(attributes)
  if (isBare) return noHeaders
  // Handlers and later copies see them. An assignment would lose a header named `__proto__`.
  return Object.freeze({
    ...packed(attributes[Wire.headersAttribute]?.StringValue),
    ...Object.fromEntries(
      Object.entries(attributes).flatMap(([name, attribute]) => (Wire.isOwn(name) ? [] : [[name, textOf(attribute)]]))
    ),
    ...(group === undefined || group === Wire.defaultGroup ? {} : { [Wire.headers.group]: group }),
    ...(trace === undefined ? {} : { [Wire.headers.trace]: trace })
  })
}

/** Returns an attribute as a header: text and numbers unchanged, bytes as base64. */
export const textOf = ({ BinaryValue, StringValue }: MessageAttributeValue): string =>
  StringValue ?? Buffer.from(BinaryValue ?? []).toString("base64")

/**
 * Returns the headers that share an attribute. If it holds none, it is a foreign producer's attribute, and a header
 * itself.
 */
const packed = (text: string | undefined): Record<string, string> => {
  if (text === undefined) return {}
  const json = jsonOf(text)
  if (typeof json !== "object" || json === null || Array.isArray(json)) return { [Wire.headersAttribute]: text }
  return Object.fromEntries(
    Object.entries(json).map(([name, value]) => [name, typeof value === "string" ? value : JSON.stringify(value)])
  )
}

const jsonOf = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
