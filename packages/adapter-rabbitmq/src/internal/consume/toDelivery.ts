/** From an AMQP message to a delivery. Pure, and total: whatever a foreign producer wrote can be consumed. */
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

/** The queue that a message comes from. */
export interface Source {
  readonly type: Type
  readonly serverVersion: string
  /** Whether a message that comes out of our own delay queue may still have to wait. */
  readonly keepsNotBefore: boolean
  /** Delay queues whose delays a policy of the server ends early. Default: none. */
  readonly early?: ReadonlySet<string> | undefined
  /** Milliseconds since the epoch. */
  readonly now: () => number
}

/** A delivery without its receipt, and facts for the receipt. */
export interface Decoded extends Omit<Delivery.Delivery, "receipt"> {
  readonly redelivered: boolean
  /** How often the server counts this copy as returned. */
  readonly returns: number
  /** The same for the copies that this one has replaced; `undefined` for one that has replaced none. */
  readonly formerReturns: number | undefined
  /** Whether it carries metadata of ours. */
  readonly isOurs: boolean
  /**
   * Whether its returns may be those of browsers, as those of a dead letter that no consumer has got yet. They use up no attempts. A
   * consumer that gets such a letter replaces it by a copy whose returns count from 0.
   */
  readonly isUncounted: boolean
}

/**
 * Reads a message. Without metadata of ours it is foreign: its first attempt, published by its timestamp or now. One that
 * brings out a fault of ours is given up with its bytes: thrown from here, it would end the connection, and every one after it.
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
    // A copy that has taken the place of a returned message has its name.
    redelivered: message.fields.redelivered || formerReturns !== undefined,
    returns,
    formerReturns,
    isOurs: known !== undefined,
    isUncounted
  }
}

/** The metadata, with its origin where the server itself has made it a dead letter. */
const withOrigin = (metadata: Metadata.Metadata, message: Incoming, now: () => number): Metadata.Metadata => {
  const deadLetter = metadata.deadLetter ?? givenUp(message, metadata.attempts, now)
  return deadLetter === metadata.deadLetter ? metadata : { ...metadata, deadLetter }
}

/**
 * The server's count of this copy's returns.
 *
 * | server | header | counts |
 * | --- | --- | --- |
 * | quorum, before 4.3 | `x-delivery-count` | every return |
 * | quorum, from 4.3 | `x-delivery-count` | failed deliveries |
 * | quorum, from 4.3 | `x-acquired-count` | every return, those that were given back as well |
 * | classic, or unknown | `redelivered` | whether there was any return |
 *
 * A producer can send these headers too, as a shovel does with a message that was browsed. The server writes over them
 * when it counts: from the first return on, but from 4.3 on, `x-delivery-count` from the first failure on.
 */
const returnsOf = ({ fields: { redelivered } }: Incoming, native: Native, source: Source): number => {
  if (!redelivered) return 0
  // On a queue that may be classic, a count may be a producer's.
  if (source.type !== "quorum") return 1
  const count = countOf(native["x-delivery-count"])
  const isSent = Version.hasFailureCount(source.serverVersion) && count > countOf(native["x-acquired-count"])
  return isSent ? 0 : count
}

const countOf = (header: unknown): number =>
  typeof header === "number" && Number.isSafeInteger(header) && header > 0 ? Math.min(header, Metadata.countLimit) : 0

/**
 * Whether a delay queue kept this copy for the whole of its delay. Then the server's clock has decided, and the
 * consumer's, which may be behind, is not asked. A copy is published without `x-death`, so that any record is its own. One of a
 * queue whose delays end `early` proves nothing of the whole.
 */
const hasWaited = (native: Native, early?: ReadonlySet<string>): boolean => {
  const expired = Wire.deathsOf(native).filter(({ reason }) => reason === "expired")
  return expired.length > 0 && !expired.some(({ queue }) => early?.has(String(queue)) === true)
}

const foreign = ({ content, properties }: Incoming, now: () => number): Metadata.Metadata => {
  const { messageId, timestamp } = properties
  const id = typeof messageId === "string" && messageId !== "" ? messageId : derivedId(content, properties)
  // AMQP's timestamps are in seconds.
  return typeof timestamp === "number" && timestamp > 0
    ? Metadata.make(shortId(id), timestamp * 1000)
    : Metadata.undated(shortId(id), now())
}

/** An id that is not too long. The end of one that was cut is a digest, so that others which begin alike stay others. */
const shortId = (id: string): string => {
  if (id.length <= Metadata.idLimit) return id
  const end = `~${Digest.hex(id)}`
  return `${id.slice(0, Metadata.idLimit - end.length)}${end}`
}

/** An id from the message itself: the same at every delivery. */
const derivedId = (content: Buffer, { correlationId, timestamp, type }: Properties): string =>
  `amqp-${Digest.hex(content, ...[correlationId, timestamp, type].map((part) => `\0${String(part)}`))}`
