/** Delivers ready messages to consumers with credit, in turn, and takes back deliveries that were lost. */
import type { Capabilities, Timers } from "@requeue/core/port"
import * as Effect from "effect/Effect"
import { type Consumer, type Queue, Receipt, type StoredMessage } from "../queues.ts"
import { toDelivery } from "./toDelivery.ts"

/** Deliveries that are made in a row before other fibers get a turn. */
const maxRun = 1000

/** Puts a consumer among the ready ones of its queue when it has credit left, and takes it out when it has none. */
const update = (consumer: Consumer): void => {
  const { readyConsumers } = consumer.queue
  const isReady = consumer.receipts.size() < consumer.credit
  if (isReady === consumer.isReady) return
  consumer.isReady = isReady
  if (isReady) readyConsumers.push(consumer)
  // Mostly it has just got a message, and is the last one.
  else readyConsumers.splice(readyConsumers.lastIndexOf(consumer), 1)
}

/** Puts the consumer whose turn it was behind the others. */
const rotate = ({ readyConsumers }: Queue): void => {
  if (readyConsumers.length > 1) readyConsumers.push(readyConsumers.shift()!)
}

/** Runs `change` while the queue delivers nothing. */
const hold = (queue: Queue, change: () => void): void => {
  const before = queue.turn
  queue.turn = "delivering"
  try {
    change()
  } finally {
    queue.turn = before
  }
}

/** The deliveries of all queues. */
export interface Dispatch {
  /** Delivers as long as there are ready messages and credit. */
  readonly pump: (queue: Queue) => void
  /** Runs `change` with no delivery in between, then delivers. */
  readonly quietly: (queue: Queue, change: () => void) => void
  /** Sets how many deliveries a consumer may have. */
  readonly credit: (consumer: Consumer, limit: number) => void
  /** Ends a delivery. The caller decides where its message goes. */
  readonly end: (receipt: Receipt) => void
  /**
   * Ends deliveries whose connection or lease was lost. Their messages go back to their places. `counted` is added to the
   * attempts. Default: they count.
   */
  readonly lose: (queue: Queue, receipts: ReadonlyArray<Receipt>, counted?: number) => void
  /** Starts a lease anew, never beyond its maximum. */
  readonly extend: (receipt: Receipt) => void
}

interface Dependencies {
  readonly timers: Timers.Timers
  readonly run: (effect: Effect.Effect<void>) => void
  readonly lease: Capabilities.Lease | undefined
  readonly overCountOnLoss: boolean
}

/** Nothing is delivered yet. */
export const make = ({ lease, overCountOnLoss, run, timers }: Dependencies): Dispatch => {
  let deliveries = 0

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
    rotate(consumer.queue)
    update(consumer)
    consumer.options.onDelivery(toDelivery(message, ++message.deliveries, receipt))
  }

  const pump = (queue: Queue): void => {
    // A consumer that publishes, settles or gives credit in `onDelivery` gets here again: the loop below delivers.
    if (queue.turn !== "idle") return
    queue.turn = "delivering"
    let left = maxRun
    try {
      for (; left > 0; left--) {
        const consumer = queue.readyConsumers[0]
        const message = consumer && queue.ready.take()
        if (message === undefined) break
        deliver(consumer!, message)
      }
    } finally {
      queue.turn = "idle"
    }
    if (left > 0) return
    // A consumer that settles at once could keep this loop busy for ever.
    queue.turn = "resting"
    run(
      Effect.map(Effect.yieldNow, () => {
        queue.turn = "idle"
        pump(queue)
      })
    )
  }

  const quietly = (queue: Queue, change: () => void): void => {
    hold(queue, change)
    pump(queue)
  }

  const end = (receipt: Receipt): void => {
    receipt.consumer.receipts.delete(receipt)
    if (receipt.expiry !== undefined) timers.cancel(receipt.expiry)
    update(receipt.consumer)
  }

  const lose = (queue: Queue, receipts: ReadonlyArray<Receipt>, counted = overCountOnLoss ? 1 : 0): void => {
    // Last one first, so that each finds its place at the head.
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
