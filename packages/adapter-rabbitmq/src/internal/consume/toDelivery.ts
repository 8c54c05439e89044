/** From an AMQP message to a delivery. Pure, and total: whatever a foreign producer wrote can be consumed. */
import { type Delivery, Digest, Metadata } from "@requeue/core/adapter-kit"
import type { Incoming, Properties } from "../client.ts"
import * as Wire from "../wire.ts"

/** The queue that a message comes from. */
export interface Source {
  readonly queueType: "quorum" | "classic"
  /** Whether a message that comes out of our own delay queue may still have to wait. */
  readonly keepsNotBefore: boolean
  /** Milliseconds since the epoch. */
  readonly now: () => number
}

/** A delivery without its receipt, and two facts for the receipt. */
export interface Decoded extends Omit<Delivery.Delivery, "receipt"> {
  /** How often the server counts this copy as returned. */
  readonly returns: number
  /** The name of this copy; `undefined` for a foreign message. */
  readonly copy: string | undefined
}

/** Reads a message. Without metadata of ours it is foreign: its first attempt, published by its timestamp or now. */
export const toDelivery = (message: Incoming, source: Source): Decoded => {
  const native = message.properties.headers ?? {}
  const encoded = native[Metadata.header]
  const known = typeof encoded === "string" ? Metadata.decode(encoded) : undefined
  const returns = returnsOf(message, native, source)
  const metadata = known ?? foreign(message, source.now)
  const copy = native[Wire.copyHeader]
  const isDue = !source.keepsNotBefore && hasWaited(native)
  return {
    body: message.content,
    headers: textHeaders(message.properties, native),
    attempts: metadata.attempts + 1 + returns,
    metadata: isDue && metadata.notBefore !== 0 ? { ...metadata, notBefore: 0 } : metadata,
    returns,
    copy: typeof copy === "string" ? copy : undefined
  }
}

/**
 * The server's count of this copy's returns.
 *
 * | server | header | counts |
 * | --- | --- | --- |
 * | quorum, before 4.3 | `x-delivery-count` | every return |
 * | quorum, from 4.3 | `x-delivery-count` | failed deliveries; `x-acquired-count` would count those given back as well |
 * | classic | `redelivered` | whether there was any return |
 */
const returnsOf = ({ fields }: Incoming, native: Readonly<Record<string, unknown>>, { queueType }: Source): number => {
  if (queueType === "classic") return fields.redelivered ? 1 : 0
  const count = Number(native["x-delivery-count"] ?? 0)
  return Number.isSafeInteger(count) && count > 0 ? count : 0
}

/**
 * Whether a delay queue kept this copy for the whole of its delay. Then the server's clock has decided, and the
 * consumer's, which may be behind, is not asked. A copy is published without `x-death`, so that any record is its own.
 */
const hasWaited = (native: Readonly<Record<string, unknown>>): boolean => {
  const deaths = native["x-death"]
  return Array.isArray(deaths) && deaths.some(({ reason }: Record<string, unknown>) => reason === "expired")
}

const foreign = ({ content, properties }: Incoming, now: () => number): Metadata.Metadata => {
  const { messageId, timestamp } = properties
  const id = typeof messageId === "string" && messageId !== "" ? messageId : derivedId(content, properties)
  // AMQP's timestamps are in seconds.
  const published = typeof timestamp === "number" && timestamp > 0 ? timestamp * 1000 : now()
  return Metadata.make(id.slice(0, Metadata.idLimit), published)
}

/** An id from the message itself: the same at every delivery. */
const derivedId = (content: Buffer, { correlationId, timestamp, type }: Properties): string =>
  `amqp-${Digest.hex(content, ...[correlationId, timestamp, type].map((part) => `\0${String(part)}`))}`

const textHeaders = (
  { contentType }: Properties,
  native: Readonly<Record<string, unknown>>
): Readonly<Record<string, string>> => {
  const headers: Record<string, string> = {}
  if (typeof contentType === "string" && native["content-type"] === undefined) headers["content-type"] = contentType
  for (const name in native) {
    if (!Wire.isOwn(name) && !Wire.isServers(name)) headers[name] = textOf(native[name])
  }
  // A handler sees them, and the next copy carries them.
  return Object.freeze(headers)
}

const textOf = (value: unknown): string => {
  if (typeof value === "string") return value
  if (Buffer.isBuffer(value)) return value.toString("utf8")
  return typeof value === "object" && value !== null ? JSON.stringify(value) : String(value)
}
