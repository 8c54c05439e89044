/** Delivers ready messages to consumers with credit, round robin, and returns lost deliveries to their queues. */
import type { Capabilities, Timers } from "@requeue/core/port"
import * as Effect from "effect/Effect"
import { type Consumer, type Queue, Receipt, type StoredMessage } from "../queues.ts"
import * as Limits from "./limits.ts"
import { toDelivery } from "./toDelivery.ts"

/** The most deliveries in a row before the broker yields to other fibers. */
const maxRun = 1000

/** Adds a consumer with unused credit to the ready ones of its queue, and removes one without. */
const update = (consumer: Consumer): void => {
  const { readyConsumers } = consumer.queue
  const isReady = consumer.receipts.size() < consumer.credit
  if (isReady === consumer.isReady) return
  consumer.isReady = isReady
  if (isReady) readyConsumers.push(consumer)
  // Usually it has just received a message, and is the last one.
  else readyConsumers.splice(readyConsumers.lastIndexOf(consumer), 1)
}

/** Returns how many messages of a share are in flight. */
const inFlight = ({ consumers }: Queue, fairBy: string): number => {
  let count = 0
  for (const { receipts } of consumers) for (const { message } of receipts) if (message.fairBy === fairBy) count++
  return count
}

/** Moves the consumer to the end. */
const rotate = (consumer: Consumer, { readyConsumers }: Queue): void => {
  if (readyConsumers.length > 1) readyConsumers.push(...readyConsumers.splice(readyConsumers.indexOf(consumer), 1))
}

/** The deliveries of all queues. */
export interface Dispatch {
  /** Delivers while there are ready messages and credit. */
  readonly pump: (queue: Queue) => void
  /** Runs `change` without deliveries, then delivers. */
  readonly quietly: (queue: Queue, change: () => void) => void
  /** Sets how many deliveries a consumer may have. */
  readonly credit: (consumer: Consumer, limit: number) => void
  /** Ends a delivery. The caller moves its message. */
  readonly end: (receipt: Receipt) => void
  /**
   * Ends deliveries whose connection or lease was lost, and returns their messages to their old positions. `counted` is
   * added to the attempts. Default: 0, or 1 with the fault `overCountOnLoss`.
   */
  readonly lose: (queue: Queue, receipts: ReadonlyArray<Receipt>, counted?: number) => void
  /** Extends a lease, up to its maximum. */
  readonly extend: (receipt: Receipt) => void
}

interface Dependencies {
  readonly timers: Timers.Timers
  readonly run: (effect: Effect.Effect<void>) => void
  readonly lease: Capabilities.Lease | undefined
  readonly overCountOnLoss: boolean
}

// Long, because its functions deliver to the same consumers.
export const make = ({ lease, overCountOnLoss, run, timers }: Dependencies): Dispatch => {
  let deliveries = 0
  /**
   * Of all queues: a consumer that publishes, settles or gives credit in `onDelivery` does not deliver. The running loop does, or the
   * stack would grow with the queues that send to each other.
   */
  let turn: "idle" | "delivering" | "resting" = "idle"
  const due: Array<Queue> = []

  const extend = (receipt: Receipt): void => {
    if (lease === undefined) return
    const now = timers.now()
    receipt.until ??= now + lease.max
    timers.cancel(receipt.expiry)
    const left = Math.min(lease.duration, receipt.until - now)
    receipt.expiry = timers.after(Math.max(0, left), () => lose(receipt.consumer.queue, [receipt]))
  }

  const deliver = (consumer: Consumer, message: StoredMessage): void => {
    const receipt = new Receipt(consumer, message, ++deliveries)
    consumer.receipts.add(receipt)
    extend(receipt)
    rotate(consumer, consumer.queue)
    update(consumer)
    consumer.options.onDelivery(toDelivery(message, ++message.deliveries, receipt))
  }

  /** Delivers a message to the first consumer that may have one. Returns whether there was one. */
  const deliverNext = (queue: Queue): boolean => {
    let wait = Number.POSITIVE_INFINITY
    for (const consumer of queue.readyConsumers) {
      const { shareLimits } = consumer.options
      const message = queue.ready.take(
        shareLimits &&
          ((fairBy) => {
            const share = { begun: queue.begun, fairBy, inFlight: inFlight(queue, fairBy) }
            const left = Limits.waitOf(shareLimits, share, timers.now())
            wait = Math.min(wait, left || Number.POSITIVE_INFINITY)
            return left === 0
          })
      )
      if (message !== undefined) {
        const { fairBy } = message
        if (fairBy !== undefined && shareLimits?.rateLimit !== undefined)
          queue.begun.record(fairBy, shareLimits.rateLimit, timers.now())
        deliver(consumer, message)
        return true
      }
      if (shareLimits === undefined) break
    }
    if (wait === Number.POSITIVE_INFINITY) return false
    timers.cancel(queue.begun.opening)
    queue.begun.opening = timers.after(wait, () => pump(queue))
    return false
  }

  /** Delivers from the queues that are due, one after the other. */
  const deliverAll = (): void => {
    turn = "delivering"
    let left = maxRun
    try {
      while (left > 0 && due.length > 0) {
        const queue = due[0]!
        if (deliverNext(queue)) left--
        else due.shift()!.isDue = false
      }
    } finally {
      turn = "idle"
    }
    if (left > 0) return
    // Consumers that settle or publish synchronously could keep this loop busy for ever. The other queues are next.
    due.push(due.shift()!)
    turn = "resting"
    run(Effect.map(Effect.yieldNow, deliverAll))
  }

  const pump = (queue: Queue): void => {
    if (!queue.isDue) {
      queue.isDue = true
      due.push(queue)
    }
    if (turn === "idle") deliverAll()
  }

  const quietly = (queue: Queue, change: () => void): void => {
    const before = turn
    turn = "delivering"
    try {
      change()
    } finally {
      turn = before
    }
    pump(queue)
  }

  const end = (receipt: Receipt): void => {
    receipt.consumer.receipts.delete(receipt)
    if (receipt.expiry !== undefined) timers.cancel(receipt.expiry)
    update(receipt.consumer)
  }

  const lose = (queue: Queue, receipts: ReadonlyArray<Receipt>, counted = overCountOnLoss ? 1 : 0): void => {
    // Last one first, so each is returned to the head.
    for (const receipt of receipts.toSorted((a, b) => b.message.position - a.message.position)) {
      end(receipt)
      receipt.message.deliveries += counted
      queue.ready.putBack(receipt.message)
    }
    pump(queue)
  }

  const credit = (consumer: Consumer, limit: number): void => {
    if (!consumer.queue.consumers.has(consumer)) return
    consumer.credit = limit
    update(consumer)
    pump(consumer.queue)
  }

  return { pump, quietly, credit, end, lose, extend }
}
