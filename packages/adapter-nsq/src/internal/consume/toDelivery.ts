/** From a message's frame to a delivery. Pure. It never fails: all bytes of foreign producers can be consumed. */
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
  readonly body: Buffer
}

/** A delivery without its receipt, and the nonce that goes into it. */
export interface Decoded extends Omit<Delivery.Delivery, "receipt"> {
  readonly nonce: string | undefined
}

/** Where parts of the data begin. */
const offsets = { attempts: 8, id: 10, body: 26 }

/** Reads the data of a message's frame. */
export const toFrame = (payload: Buffer): Frame => ({
  timestamp: payload.readBigInt64BE(0),
  attempts: payload.readUInt16BE(offsets.attempts),
  id: payload.toString("latin1", offsets.id, offsets.body),
  body: payload.subarray(offsets.body)
})

/** Facts that the message itself does not have. */
interface Context {
  readonly now: number
  /** The same by the clock of the nsqd. */
  readonly nsqdNow: number
  readonly due: number | undefined
}

/**
 * The delivery of a message, without its receipt. Times are in milliseconds since the epoch; `due` is when a message that
 * this process has requeued may come again, else `undefined`. A message that brings out a fault of ours is given up with its
 * bytes: thrown from here, it would end the process, and every process after it.
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
 * When a message is due that nsqd was to hold back. nsqd forgets that when it restarts, or writes the message to its disk, so
 * that the message may come early. How much of the delay is left, nsqd's clock decides, and never the consumer's: a message that
 * nsqd has held to the end is due. It is due as well when the publisher's time has come, since nsqd's clock may have been set.
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

/** The same at every delivery. Two nsqd may give the same id, but hardly ever in the same nanosecond. */
const foreign = ({ id, timestamp }: Frame, stored: number): Metadata.Metadata =>
  Metadata.make(`nsq-${id}-${timestamp.toString(36)}`, stored)
