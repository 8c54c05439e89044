/** Hands ready messages to consumers with credit, in turn, and takes back what comes back unsettled. */
import type { Capabilities, Delivery, Timers } from "@requeue/core/adapter-kit"
import * as Effect from "effect/Effect"
import { type Consumer, Loan, type Queue, type Stored } from "../queues.ts"

/** Deliveries that are made at a stretch before other fibers get a turn. */
const stretch = 1000

export interface Dispatch {
  /** Delivers as long as there are ready messages and credit. */
  readonly pump: (queue: Queue) => void
  /** Runs `change` with no delivery in between, then delivers. */
  readonly quietly: (queue: Queue, change: () => void) => void
  readonly credit: (consumer: Consumer, limit: number) => void
  /** The loan is over; where its message goes is up to the caller. */
  readonly end: (loan: Loan) => void
  /** Connections or leases were lost: the messages go back to their places. The attempts were made, and stay counted. */
  readonly lose: (queue: Queue, loans: ReadonlyArray<Loan>) => void
  /** Starts the lease anew, never beyond its maximum. */
  readonly extend: (loan: Loan) => void
}

/** A message as a consumer sees it on this copy's delivery number `deliveries`. */
export const view = (stored: Stored, deliveries: number, receipt?: unknown): Delivery.Delivery => ({
  body: stored.body,
  headers: stored.headers,
  attempts: stored.metadata.attempts + deliveries,
  metadata: stored.metadata,
  receipt
})

/** A loan's message as its consumer has it. */
export const delivered = (loan: Loan): Delivery.Delivery => view(loan.stored, loan.stored.deliveries, loan)

export const make = (env: {
  readonly timers: Timers.Timers
  readonly run: (effect: Effect.Effect<void>) => void
  readonly lease: Capabilities.Lease | undefined
  readonly overCountOnLoss: boolean
}): Dispatch => {
  const { lease, timers } = env
  let deliveries = 0

  const feed = (consumer: Consumer): void => {
    const { hungry } = consumer.queue
    const isHungry = consumer.loans.size() < consumer.credit
    if (isHungry === consumer.isHungry) return
    consumer.isHungry = isHungry
    if (isHungry) hungry.push(consumer)
    // Mostly it has just been served, and is the last one.
    else hungry.splice(hungry.lastIndexOf(consumer), 1)
  }

  const extend = (loan: Loan): void => {
    if (lease === undefined) return
    const now = timers.now()
    loan.until ??= now + lease.max
    timers.cancel(loan.expiry)
    const left = Math.min(lease.duration, loan.until - now)
    loan.expiry = timers.after(Math.max(0, left), () => lose(loan.consumer.queue, [loan]))
  }

  const deliver = (consumer: Consumer, stored: Stored): void => {
    const { hungry } = consumer.queue
    const loan = new Loan(consumer, stored, ++deliveries)
    consumer.loans.add(loan)
    extend(loan)
    // The others that have credit come first.
    if (hungry.length > 1) hungry.push(hungry.shift()!)
    feed(consumer)
    consumer.options.onDelivery(view(stored, ++stored.deliveries, loan))
  }

  const pump = (queue: Queue): void => {
    // A consumer that publishes, settles or gives credit in `onDelivery` gets here again: the loop below goes on for it.
    if (queue.turn !== "idle") return
    queue.turn = "delivering"
    let left = stretch
    try {
      for (; left > 0; left--) {
        const consumer = queue.hungry[0]
        const stored = consumer && queue.ready.take()
        if (stored === undefined) break
        deliver(consumer!, stored)
      }
    } finally {
      queue.turn = "idle"
    }
    if (left > 0) return
    // A consumer that settles at once could keep this loop busy for ever.
    queue.turn = "resting"
    env.run(
      Effect.map(Effect.yieldNow, () => {
        queue.turn = "idle"
        pump(queue)
      })
    )
  }

  const quietly = (queue: Queue, change: () => void): void => {
    const before = queue.turn
    queue.turn = "delivering"
    change()
    queue.turn = before
    pump(queue)
  }

  const end = (loan: Loan): void => {
    loan.consumer.loans.delete(loan)
    timers.cancel(loan.expiry)
    feed(loan.consumer)
  }

  const lose = (queue: Queue, loans: ReadonlyArray<Loan>): void => {
    // Last one first, so that each finds its place at the head.
    for (const loan of loans.toSorted((a, b) => b.stored.position - a.stored.position)) {
      end(loan)
      if (env.overCountOnLoss) loan.stored.deliveries++
      queue.ready.putBack(loan.stored)
    }
    pump(queue)
  }

  return {
    pump,
    quietly,
    end,
    lose,
    extend,
    credit: (consumer, limit) => {
      if (!consumer.queue.consumers.has(consumer)) return
      consumer.credit = limit
      feed(consumer)
      pump(consumer.queue)
    }
  }
}
