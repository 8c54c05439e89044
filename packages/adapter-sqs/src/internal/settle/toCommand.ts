/** Converts a settlement to SQS calls. Pure. */
import { BrokerError, Delay, type Delivery, Outgoing, type Settlement } from "@requeue/core/port"
import type { FifoRetry } from "../../SqsOptions.ts"
import * as MaxReceiveCount from "../declare/maxReceiveCount.ts"
import * as Limits from "../limits.ts"

/**
 * The calls of one settlement:
 *
 * - `Delete`: `DeleteMessageBatch`; also for any settlement of a delivery whose copy is stored.
 * - `Hide`: `ChangeMessageVisibilityBatch`; the message is redelivered after `seconds`.
 * - `Copy`: `SendMessageBatch`, then `DeleteMessageBatch`.
 * - `Refuse`: none; the delivery stays held.
 * - `Leave`: none; the message is redelivered when its lease ends, or was already.
 */
export type Command =
  | { readonly _tag: "Delete" }
  | { readonly _tag: "Hide"; readonly seconds: number }
  | { readonly _tag: "Copy"; readonly outgoing: Outgoing.Outgoing }
  | { readonly _tag: "Refuse"; readonly error: BrokerError.BrokerError }
  | { readonly _tag: "Leave" }

/** Deletes a message. */
export const remove = { _tag: "Delete" } as const

/** The facts that determine the command, besides delivery and settlement. */
export interface Input {
  readonly queue: string
  readonly fifo: boolean
  readonly fifoRetry: FifoRetry
  /** Milliseconds since the delivery was received. */
  readonly elapsed: number
  /** How often SQS has delivered this copy. */
  readonly receives: number
  /**
   * Whether another process would count the next delivery differently; the metadata of a copy makes the count known to
   * all.
   */
  readonly countsHere: boolean
  /** Deliveries that the policy allows before it dead-letters a message that no handler finishes. */
  readonly maxDeliveries: number
  /** Whether too many messages are in flight to hide more. */
  readonly isLimitReached: boolean
  /** Whether an earlier call may still take effect and change the delay. */
  readonly isLeaseUncertain: boolean
  /** Whether an earlier call may have returned the message; another consumer may have it now. */
  readonly isLeft: boolean
  /**
   * Remaining milliseconds of a retry that SQS has not accepted, 0 for another settlement; `undefined` if none but a
   * release has failed.
   */
  readonly held: number | undefined
  /**
   * Milliseconds for which a returned message must stay hidden: otherwise a running poll without credit would receive
   * it.
   */
  readonly holdFor: number
  /** Whether a copy of the message is stored already, perhaps by an earlier delivery. */
  readonly isCopied: boolean
  /** Milliseconds since the epoch. */
  readonly now: number
}

/**
 * Returns the seconds to hide a message for a delay, rounded up; `undefined` if SQS would refuse. `delay` and
 * `elapsed`, the time since the receipt, are in milliseconds.
 */
export const hideFor = (delay: number, elapsed: number): number | undefined => {
  const seconds = Math.ceil(delay / 1000)
  return seconds * 1000 + elapsed <= Limits.hide ? seconds : undefined
}

/** Chooses the calls of a settlement. */
export const toCommand = (delivery: Delivery.Delivery, settlement: Settlement.Settlement, input: Input): Command => {
  const { isCopied, now, queue } = input
  if (isCopied) return remove
  switch (settlement._tag) {
    case "Ack":
    case "Drop":
      return remove
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
 * Releases a message. SQS counts every receive, so a message that arrived early waits as a copy with 0 receives. If the
 * next delivery would exceed the limit, the message is also returned as a copy: otherwise it would be dead-lettered
 * although no handler has seen it. A FIFO queue cannot delay single messages, and a copy would lose its position.
 *
 * A message whose settlement has failed is returned itself, with its remaining delay: SQS may have deleted it, and a copy
 * would deliver it again. Its receive count continues, so the queue's redrive policy removes a message that Requeue
 * cannot dead-letter.
 */
const release = (
  delivery: Delivery.Delivery,
  settlement: Extract<Settlement.Settlement, { _tag: "Release" }>,
  { elapsed, fifo, held, holdFor, isLeft, maxDeliveries, now, queue, receives }: Input
): Command => {
  // Beyond that the message is dead-lettered in any case. After a handler has started, the count continues: otherwise a
  // handler that never ends would receive every copy.
  const isAllowed = delivery.attempts <= maxDeliveries && settlement.isBegun !== true
  // SQS and other processes also count deliveries that were not attempts.
  const isLast = isAllowed && delivery.metadata.attempts + receives >= maxDeliveries
  const delay = Math.max(settlement.delay, held ?? 0)
  if (!fifo && held === undefined && (delay > 0 || isLast))
    return { _tag: "Copy", outgoing: Outgoing.hop(delivery, settlement, queue, now) }
  // On a standard queue an old receipt handle still works, and would affect the message's new consumer.
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
    detail: `a delay of ${Delay.format(delay)} is required, but a message can block its FIFO group for ${Delay.format(Limits.hide)} from its receipt`,
    remedy: `Use shorter delays, or fifoRetry: "resend"`
  })
