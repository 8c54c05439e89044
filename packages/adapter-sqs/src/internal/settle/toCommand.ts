/** From a settlement to what is asked of SQS. Pure. */
import { BrokerError, Delay, type Delivery, Outgoing, type Settlement } from "@requeue/core/adapter-kit"
import type { FifoRetry } from "../../SqsOptions.ts"
import * as Backstop from "../declare/maxReceiveCount.ts"
import * as Wire from "../wire.ts"

/**
 * - `Delete`: `DeleteMessageBatch`.
 * - `Hide`: `ChangeMessageVisibilityBatch`; the message is delivered again after so many seconds.
 * - `Copy`: `SendMessageBatch`, then `DeleteMessageBatch`.
 * - `Refuse`: nothing; the delivery stays ours.
 */
export type Command =
  | { readonly _tag: "Delete" }
  | { readonly _tag: "Hide"; readonly seconds: number }
  | { readonly _tag: "Copy"; readonly outgoing: Outgoing.Outgoing }
  | { readonly _tag: "Refuse"; readonly error: BrokerError.BrokerError }

export interface Facts {
  readonly queue: string
  readonly fifo: boolean
  readonly fifoRetry: FifoRetry
  /** Milliseconds since the delivery was received. */
  readonly elapsed: number
  /** How often SQS has handed out this copy. */
  readonly receives: number
  /** Deliveries that the policy allows. */
  readonly maxAttempts: number
  /** Whether hidden messages would take too much of the queue's quota of messages in flight. */
  readonly isCrowded: boolean
  /** Whether an extension of the lease may still come to pass, and shorten or lengthen what is asked now. */
  readonly isUnsure: boolean
  /** Milliseconds since the epoch. */
  readonly now: number
}

/** For the way of the receipt and of this call, and for the clocks in between. */
const margin = 10_000

/** The longest delay that visibility keeps when the handler has taken no time, in milliseconds. */
export const longestHide = Wire.longestVisibility - margin

/** Seconds that a message can be hidden for this long; never less. `undefined` when SQS would refuse. */
export const hideFor = (delay: number, elapsed: number): number | undefined => {
  const seconds = Math.ceil(delay / 1000)
  return seconds * 1000 + elapsed <= longestHide ? seconds : undefined
}

export const toCommand = (delivery: Delivery.Delivery, settlement: Settlement.Settlement, facts: Facts): Command => {
  const { now, queue } = facts
  switch (settlement._tag) {
    case "Ack":
    case "Drop":
      return { _tag: "Delete" }
    case "Retry":
      return retry(delivery, settlement, facts)
    case "DeadLetter":
      return { _tag: "Copy", outgoing: Outgoing.deadLetter(delivery, settlement, queue, now) }
    case "Release":
      return release(delivery, settlement.delay, facts)
  }
}

const retry = (
  delivery: Delivery.Delivery,
  settlement: Extract<Settlement.Settlement, { _tag: "Retry" }>,
  facts: Facts
): Command => {
  const { elapsed, fifo, fifoRetry, isCrowded, isUnsure, now, queue, receives } = facts
  const seconds = hideFor(settlement.delay, elapsed)
  const stays = fifo ? fifoRetry === "block" : !isCrowded && !isUnsure && receives < Backstop.renewAt
  if (stays && seconds !== undefined) return { _tag: "Hide", seconds }
  if (fifo && fifoRetry === "block") return { _tag: "Refuse", error: tooLong(queue, settlement.delay) }
  return { _tag: "Copy", outgoing: Outgoing.retry(delivery, settlement, queue, now) }
}

/**
 * SQS counts every receive. So a message that came before its time waits in a copy, which does not count; and where the
 * next delivery would be one too many, the message is given back as a copy as well: it must not be given up for what no
 * handler has seen. A FIFO queue has no delayed copies, and a copy would lose its place.
 */
const release = (delivery: Delivery.Delivery, delay: number, facts: Facts): Command => {
  const { elapsed, fifo, maxAttempts, now, queue } = facts
  const isLast = delivery.attempts >= maxAttempts
  if (!fifo && (delay > 0 || isLast)) return { _tag: "Copy", outgoing: Outgoing.hop(delivery, queue, delay, now) }
  const most = Math.max(0, Math.floor((longestHide - elapsed) / 1000))
  return { _tag: "Hide", seconds: Math.min(Math.ceil(delay / 1000), most) }
}

const tooLong = (queue: string, delay: number): BrokerError.BrokerError =>
  new BrokerError.BrokerError({
    broker: "sqs",
    operation: "settle",
    queue,
    reason: "Unsupported",
    detail: `a delay of ${Delay.format(delay)} was asked, a message can block its FIFO group for ${Delay.format(longestHide)} from its receipt`,
    remedy: `Use shorter delays, or fifoRetry: "resend"`
  })
