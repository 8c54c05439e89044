/** From a message's frame to a delivery. Pure, and total: whatever a foreign producer wrote can be consumed. */
import { type Delivery, Metadata } from "@requeue/core/adapter-kit"
import * as Envelope from "../wire.ts"

/** https://nsq.io/clients/tcp_protocol_spec.html#data-format */
export interface Frame {
  /** Nanoseconds since the epoch, by nsqd's clock, at which nsqd took the message. A requeue leaves it as it is. */
  readonly timestamp: bigint
  /** Deliveries of this copy, this one included. nsqd counts to 65,535 and then from 0. */
  readonly attempts: number
  /** 16 characters. */
  readonly id: string
  readonly body: Buffer
}

const header = { attempts: 8, id: 10, body: 26 }

export const toFrame = (payload: Buffer): Frame => ({
  timestamp: payload.readBigInt64BE(0),
  attempts: payload.readUInt16BE(header.attempts),
  id: payload.toString("latin1", header.id, header.body),
  body: payload.subarray(header.body)
})

export interface Context {
  /** Milliseconds since the epoch. */
  readonly now: number
  /** When this message was to come again, where this process has requeued it; `undefined` where it has not. */
  readonly due: number | undefined
}

export const toDelivery = (frame: Frame, { due, now }: Context): Omit<Delivery.Delivery, "receipt"> => {
  const taken = Number(frame.timestamp / 1_000_000n)
  const envelope = Envelope.decode(frame.body)
  if (envelope === undefined) {
    const metadata = foreign(frame, taken)
    return { body: frame.body, headers: {}, attempts: frame.attempts, metadata: withDue(metadata, due ?? 0) }
  }
  const { body, deferred, headers, metadata } = envelope
  // nsqd's clock says that the delay is over, and has the last word: the publisher's may be ahead.
  const isOver = deferred !== undefined && taken + deferred <= now
  const attempts = metadata.attempts + frame.attempts
  return { body, headers, attempts, metadata: withDue(metadata, due ?? (isOver ? 0 : metadata.notBefore)) }
}

const withDue = (metadata: Metadata.Metadata, notBefore: number): Metadata.Metadata =>
  metadata.notBefore === notBefore ? metadata : { ...metadata, notBefore }

/** The same at every delivery. Two nsqd may give the same id, hardly ever in the same nanosecond. */
const foreign = ({ id, timestamp }: Frame, taken: number): Metadata.Metadata =>
  Metadata.make(`nsq-${id}-${timestamp.toString(36)}`, taken)
