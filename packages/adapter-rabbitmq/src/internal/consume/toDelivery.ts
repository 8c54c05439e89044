/** Converts an AMQP message to a delivery. Pure and total: any message of a foreign producer can be consumed. */
import { type Delivery, Digest, Failure, Metadata } from "@requeue/core/port"
import type { Type } from "../../RabbitMqQueue.ts"
import type { Incoming, Properties } from "../client.ts"
import * as Version from "../version.ts"
import * as Wire from "../wire.ts"
import { givenUp } from "./givenUp.ts"
import { identify } from "./identity.ts"
import * as Returns from "./returns.ts"
import { textHeaders } from "./textHeaders.ts"

type Native = Readonly<Record<string, unknown>>

/** The queue that delivers a message. */
export interface Source {
  readonly type: Type
  readonly serverVersion: string
  /** Whether a message from the adapter's delay queue may still have to wait. */
  readonly keepsNotBefore: boolean
  /** Delay queues whose delays a policy of the server ends early. Default: none. */
  readonly early?: ReadonlySet<string> | undefined
  /** Milliseconds since the epoch. */
  readonly now: () => number
}

/** A delivery without its receipt, plus facts for the receipt. */
export interface Decoded extends Omit<Delivery.Delivery, "receipt"> {
  readonly redelivered: boolean
  /** How often this copy was returned to the queue, by the server's count. */
  readonly returns: number
  /** The same for the copies before this one; `undefined` if it replaces none. */
  readonly formerReturns: number | undefined
  /** Whether the message carries Requeue's metadata. */
  readonly isOurs: boolean
  /**
   * Whether browsing may have caused the returns, as for a dead letter that no consumer has received yet. They use up
   * no attempts. A consumer that receives such a letter replaces it with a copy whose returns count from 0.
   */
  readonly isUncounted: boolean
}

/**
 * Reads a message. A message without Requeue's metadata is foreign: its first attempt, published at its timestamp or
 * now. A message that triggers a bug here becomes unreadable and keeps its bytes. An exception would end the
 * connection, and every later one too.
 */
export const toDelivery = (message: Incoming, source: Source): Decoded => {
  try {
    return decoded(message, source)
  } catch (cause) {
    return {
      body: message.content,
      headers: Object.freeze({}),
      attempts: 1,
      metadata: Metadata.undated(derivedId(message.content, {}), source.now()),
      redelivered: message.fields.redelivered,
      returns: 0,
      formerReturns: undefined,
      isOurs: false,
      isUncounted: false,
      unreadable: Failure.summarize(cause)
    }
  }
}

const decoded = (message: Incoming, source: Source): Decoded => {
  const native = message.properties.headers ?? {}
  const encoded = native[Metadata.header]
  const known = typeof encoded === "string" ? Metadata.decode(encoded) : undefined
  const returns = returnsOf(message, native, source)
  const metadata = withOrigin(known ?? foreign(message, source.now), message, source.now)
  const formerReturns = Returns.read(native[Wire.returnsHeader], () => identify(message.content, message.properties))
  const isUncounted = metadata.deadLetter !== undefined && formerReturns === undefined
  const isDue = !source.keepsNotBefore && hasWaited(native, source.early)
  return {
    body: message.content,
    headers: textHeaders(message.properties),
    attempts: metadata.attempts + 1 + (formerReturns ?? 0) + (isUncounted ? 0 : returns),
    metadata: isDue && metadata.notBefore !== 0 ? { ...metadata, notBefore: 0 } : metadata,
    // A replacement of a returned message has the same name.
    redelivered: message.fields.redelivered || formerReturns !== undefined,
    returns,
    formerReturns,
    isOurs: known !== undefined,
    isUncounted
  }
}

/** Adds the origin if the server itself made the message a dead letter. */
const withOrigin = (metadata: Metadata.Metadata, message: Incoming, now: () => number): Metadata.Metadata => {
  const deadLetter = metadata.deadLetter ?? givenUp(message, metadata.attempts, now)
  return deadLetter === metadata.deadLetter ? metadata : { ...metadata, deadLetter }
}

/**
 * Returns the server's count of this copy's returns.
 *
 * | server | header | counts |
 * | --- | --- | --- |
 * | quorum, before 4.3 | `x-delivery-count` | every return |
 * | quorum, from 4.3 | `x-delivery-count` | failed deliveries |
 * | quorum, from 4.3 | `x-acquired-count` | every return, releases included |
 * | classic, or unknown | `redelivered` | whether there was any return |
 *
 * A producer can send these headers too: a shovel does so with a browsed message. The server overwrites them when it
 * counts. It does so from the first return on. From 4.3 on, it writes `x-delivery-count` only from the first failure
 * on.
 */
const returnsOf = ({ fields: { redelivered } }: Incoming, native: Native, source: Source): number => {
  if (!redelivered) return 0
  // On a queue that may be classic, the count may be the producer's.
  if (source.type !== "quorum") return 1
  const count = countOf(native["x-delivery-count"])
  const isSent = Version.hasFailureCount(source.serverVersion) && count > countOf(native["x-acquired-count"])
  return isSent ? 0 : count
}

const countOf = (header: unknown): number =>
  typeof header === "number" && Number.isSafeInteger(header) && header > 0 ? Math.min(header, Metadata.countLimit) : 0

/**
 * Whether a delay queue held this copy for its whole delay. Then the server's clock has decided, and the consumer's
 * clock, which may be behind, is ignored. A copy is published without `x-death`, so every record is from this copy. The
 * record of a queue whose delays end `early` proves nothing.
 */
const hasWaited = (native: Native, early?: ReadonlySet<string>): boolean => {
  const expired = Wire.deathsOf(native).filter(({ reason }) => reason === "expired")
  return expired.length > 0 && !expired.some(({ queue }) => early?.has(String(queue)) === true)
}

const foreign = ({ content, properties }: Incoming, now: () => number): Metadata.Metadata => {
  const { messageId, timestamp } = properties
  const id = typeof messageId === "string" && messageId !== "" ? messageId : derivedId(content, properties)
  // AMQP timestamps are in seconds.
  return typeof timestamp === "number" && timestamp > 0
    ? Metadata.make(shortId(id), timestamp * 1000)
    : Metadata.undated(shortId(id), now())
}

/** Shortens an id that is too long. A digest replaces its end, so ids with the same start stay different. */
const shortId = (id: string): string => {
  if (id.length <= Metadata.idLimit) return id
  const end = `~${Digest.hex(id)}`
  return `${id.slice(0, Metadata.idLimit - end.length)}${end}`
}

/** Makes an id from the message itself, the same at every delivery. */
const derivedId = (content: Buffer, { correlationId, timestamp, type }: Properties): string =>
  Metadata.idOfContent(Digest.hex(content, ...[correlationId, timestamp, type].map((part) => `\0${String(part)}`)))
