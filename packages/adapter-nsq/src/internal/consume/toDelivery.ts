/** Converts a message's frame to a delivery. Pure. Never fails: any bytes of foreign producers can be consumed. */
import { type Delivery, Failure, Metadata } from "@requeue/core/port"
import * as Wire from "../wire.ts"

/** The data of a message's frame. https://nsq.io/clients/tcp_protocol_spec.html#data-format */
export interface Frame {
  /** When nsqd stored the message, in nanoseconds since the epoch by its clock. A requeue does not change it. */
  readonly timestamp: bigint
  /** Deliveries of this copy, this one included. nsqd counts to 65,535 and then from 0. */
  readonly attempts: number
  /** 16 characters. */
  readonly id: string
  /** The id and the timestamp: two nsqd, or two topics, may use the same id, but hardly in the same nanosecond. */
  readonly name: string
  readonly body: Buffer
}

/** A delivery without its receipt, and the nonce for the receipt. */
export interface Decoded extends Omit<Delivery.Delivery, "receipt"> {
  readonly nonce: string | undefined
}

/** Byte offsets of the parts. */
const offsets = { attempts: 8, id: 10, body: 26 }

/** Holds the bytes of a name. Names are remembered for long, and one string needs half of the memory of a concatenation. */
const named = Buffer.alloc(offsets.body - offsets.id + offsets.attempts)

/** Reads the data of a message's frame. */
export const toFrame = (payload: Buffer): Frame => {
  payload.copy(named, 0, 0, offsets.attempts)
  payload.copy(named, offsets.attempts, offsets.id, offsets.body)
  return {
    timestamp: payload.readBigInt64BE(0),
    attempts: payload.readUInt16BE(offsets.attempts),
    id: payload.toString("latin1", offsets.id, offsets.body),
    name: named.toString("latin1"),
    body: payload.subarray(offsets.body)
  }
}

/** Facts that are not in the message. */
interface Context {
  readonly now: number
  /** `now` by the clock of the nsqd. */
  readonly nsqdNow: number
  readonly due: number | undefined
}

/**
 * Returns the delivery of a message, without its receipt. Times are in milliseconds since the epoch; `due` is when a
 * message that this process has requeued is due, otherwise `undefined`. If decoding throws, the message is unreadable
 * and is dead-lettered with its bytes. An exception would end this process, and every process that receives the message
 * later.
 */
export const toDelivery = (frame: Frame, context: Context): Decoded => {
  try {
    return decoded(frame, context)
  } catch (cause) {
    const { attempts, body } = frame
    const unreadable = Failure.summarize(cause)
    const metadata = { ...foreign(frame, 0), isUndated: true } as const
    return { body, headers: Wire.noHeaders, attempts, metadata, nonce: undefined, unreadable }
  }
}

const decoded = (frame: Frame, context: Context): Decoded => {
  const { due } = context
  const stored = Number(frame.timestamp / 1_000_000n)
  const envelope = Wire.decode(frame.body, stored)
  if (envelope === undefined) {
    const metadata = foreign(frame, stored)
    return {
      body: frame.body,
      headers: Wire.noHeaders,
      attempts: frame.attempts,
      metadata: withDue(metadata, due ?? 0),
      nonce: undefined
    }
  }
  const { body, deferred, headers, metadata, nonce } = envelope
  const attempts = metadata.attempts + frame.attempts
  const notBefore = due ?? (deferred === undefined ? metadata.notBefore : dueOf(stored, deferred, metadata, context))
  return { body, headers, attempts, metadata: withDue(metadata, notBefore), nonce }
}

/**
 * Returns when a deferred message is due. After a restart, or when nsqd writes the message to its disk, the message may
 * arrive early. nsqd's clock, not the consumer's, determines the remaining delay: a message that nsqd deferred to the
 * end is due. It is also due at the publisher's due time, since nsqd's clock may have been set.
 */
const dueOf = (
  stored: number,
  deferred: number,
  { notBefore }: Metadata.Metadata,
  { now, nsqdNow }: Context
): number => {
  const rest = Math.min(stored + deferred - nsqdNow, notBefore - nsqdNow, deferred)
  return rest <= 0 ? 0 : now + rest
}

const withDue = (metadata: Metadata.Metadata, notBefore: number): Metadata.Metadata =>
  metadata.notBefore === notBefore ? metadata : { ...metadata, notBefore }

/** Returns metadata that is equal at every delivery. */
const foreign = ({ id, timestamp }: Frame, stored: number): Metadata.Metadata =>
  Metadata.make(`nsq-${id}-${timestamp.toString(36)}`, stored)
