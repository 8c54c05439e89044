/** From a settlement to the calls of SQS that carry it out. Pure. */
import { BrokerError, Delay, type Delivery, Outgoing, type Settlement } from "@requeue/core/port"
import type { FifoRetry } from "../../SqsOptions.ts"
import * as MaxReceiveCount from "../declare/maxReceiveCount.ts"
import * as Limits from "../limits.ts"

/**
 * The calls of one settlement:
 *
 * - `Delete`: `DeleteMessageBatch`; whatever is asked of a delivery whose copy is stored.
 * - `Hide`: `ChangeMessageVisibilityBatch`; the message is delivered again after so many seconds.
 * - `Copy`: `SendMessageBatch`, then `DeleteMessageBatch`.
 * - `Refuse`: none; the delivery stays ours.
 * - `Leave`: none; the message comes again when its lease ends, or has come already.
 */
export type Command =
  | { readonly _tag: "Delete" }
  | { readonly _tag: "Hide"; readonly seconds: number }
  | { readonly _tag: "Copy"; readonly outgoing: Outgoing.Outgoing }
  | { readonly _tag: "Refuse"; readonly error: BrokerError.BrokerError }
  | { readonly _tag: "Leave" }

/** On these the command depends, beside the delivery and its settlement. */
export interface Input {
  readonly queue: string
  readonly fifo: boolean
  readonly fifoRetry: FifoRetry
  /** Milliseconds since the delivery was received. */
  readonly elapsed: number
  /** How often SQS has delivered this copy. */
  readonly receives: number
  /** Whether another process would count the next delivery otherwise; the metadata of a copy tells it to all. */
  readonly countsHere: boolean
  /** Deliveries that the policy allows, before it gives up a message that never came to an end. */
  readonly maxDeliveries: number
  /** Whether so many messages are in flight that no more may be hidden. */
  readonly isLimitReached: boolean
  /** Whether an earlier call may still take effect, and shorten or lengthen what is asked now. */
  readonly isLeaseUncertain: boolean
  /** Whether an earlier call that gives the message back may have taken effect, so that somebody else may have it. */
  readonly isLeft: boolean
  /**
   * Milliseconds that are left of a retry that SQS has not taken, 0 for a dead letter; `undefined` where neither has failed.
   */
  readonly held: number | undefined
  /** Milliseconds for which a message that is given back must not come again: a poll that nobody wants would receive it. */
  readonly holdFor: number
  /** Whether a copy of the message is stored already, perhaps of an earlier delivery. */
  readonly isCopied: boolean
  /** Milliseconds since the epoch. */
  readonly now: number
}

/**
 * Seconds for which a message is hidden to keep a delay, rounded up; `undefined` when SQS would refuse. `delay` and
 * `elapsed`, the time since the receipt, are in milliseconds.
 */
export const hideFor = (delay: number, elapsed: number): number | undefined => {
  const seconds = Math.ceil(delay / 1000)
  return seconds * 1000 + elapsed <= Limits.hide ? seconds : undefined
}

/** Chooses the calls of a settlement. */
export const toCommand = (delivery: Delivery.Delivery, settlement: Settlement.Settlement, input: Input): Command => {
  const { isCopied, now, queue } = input
  if (isCopied) return { _tag: "Delete" }
  switch (settlement._tag) {
    case "Ack":
    case "Drop":
      return { _tag: "Delete" }
    case "Retry":
      return retry(delivery, settlement, input)
    case "DeadLetter":
      return { _tag: "Copy", outgoing: Outgoing.deadLetter(delivery, settlement, queue, now) }
    case "Release":
      return release(delivery, settlement, input)
  }
}

const retry = (
  delivery: Delivery.Delivery,
  settlement: Extract<Settlement.Settlement, { _tag: "Retry" }>,
  { countsHere, elapsed, fifo, fifoRetry, isLeaseUncertain, isLimitReached, now, queue, receives }: Input
): Command => {
  const seconds = hideFor(settlement.delay, elapsed)
  const mayHide = fifo
    ? fifoRetry === "block"
    : !countsHere && !isLimitReached && !isLeaseUncertain && receives < MaxReceiveCount.renewAt
  if (mayHide && seconds !== undefined) return { _tag: "Hide", seconds }
  if (fifo && fifoRetry === "block") return { _tag: "Refuse", error: tooLong(queue, settlement.delay) }
  return { _tag: "Copy", outgoing: Outgoing.retry(delivery, settlement, queue, now) }
}

/**
 * SQS counts every receive. So a message that came before its time waits as a copy, which starts at no receives. Where
 * the next delivery would be one too many, the message is given back as a copy as well, lest it be given up though no
 * handler has seen it. A FIFO queue delays no single message, and a copy would lose its place.
 *
 * A message whose retry or dead letter has failed goes back itself, with what is left of its delay. SQS counts on, so that the
 * queue's own redrive policy ends what Requeue cannot give up.
 */
const release = (
  delivery: Delivery.Delivery,
  settlement: Extract<Settlement.Settlement, { _tag: "Release" }>,
  { elapsed, fifo, held, holdFor, isLeft, maxDeliveries, now, queue, receives }: Input
): Command => {
  // Beyond that it is given up in any case. The count of one that a handler has had goes on: each copy would let a handler
  // that never ends have it once more.
  const isAllowed = delivery.attempts <= maxDeliveries && settlement.isBegun !== true
  // SQS and other processes count deliveries that this process knows to have been no attempts.
  const isLast = isAllowed && delivery.metadata.attempts + receives >= maxDeliveries
  const delay = Math.max(settlement.delay, held ?? 0)
  if (!fifo && held === undefined && (delay > 0 || isLast))
    return { _tag: "Copy", outgoing: Outgoing.hop(delivery, settlement, queue, now) }
  // On a standard queue an old receipt handle works on, and would take the message from whoever has it by now.
  if (!fifo && isLeft) return { _tag: "Leave" }
  const most = Math.max(0, Math.floor((Limits.hide - elapsed) / 1000))
  return { _tag: "Hide", seconds: Math.min(Math.ceil(Math.max(delay, holdFor) / 1000), most) }
}

const tooLong = (queue: string, delay: number): BrokerError.BrokerError =>
  new BrokerError.BrokerError({
    broker: "sqs",
    operation: "settle",
    queue,
    reason: "Unsupported",
    detail: `a delay of ${Delay.format(delay)} was asked, a message can block its FIFO group for ${Delay.format(Limits.hide)} from its receipt`,
    remedy: `Use shorter delays, or fifoRetry: "resend"`
  })
