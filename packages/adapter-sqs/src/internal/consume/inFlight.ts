/** The deliveries of one subscription that are in flight: received, and neither settled nor lost. */
import { type Delivery, Settlement, type Broker, type Timers } from "@requeue/core/adapter-kit"
import type { Message } from "../client.ts"
import { originals } from "./originals.ts"
import * as Receipt from "./receipt.ts"
import type { Remembered } from "./remembered.ts"
import type { Sources } from "./sources.ts"
import { toDelivery } from "./toDelivery.ts"

/** Deliveries from their receipt to their end. */
export interface InFlight {
  readonly deliveries: ReadonlySet<Delivery.Delivery>
  /** Takes a message in; answers `undefined` for one that is settled already, and discards it. */
  readonly received: (message: Message) => Delivery.Delivery | undefined
  /** A delivery is no longer in flight: its message has left the queue, or is in it again. */
  readonly ended: (delivery: Delivery.Delivery) => void
  /** A settlement of a delivery has failed, and it is still ours. */
  readonly held: (delivery: Delivery.Delivery) => void
  /** The number of deliveries whose settlement has failed: they may stay for long. */
  readonly heldCount: () => number
}

/** Requests that give deliveries back at once. */
export const releases = (deliveries: ReadonlyArray<Delivery.Delivery>): ReadonlyArray<Broker.SettleRequest> =>
  deliveries.map((delivery) => ({ delivery, settlement: Settlement.Release() }))

/** Nothing is in flight yet. */
export const make = (env: {
  readonly fifo: boolean
  /** Milliseconds of a lease. */
  readonly visibilityTimeout: number
  readonly timers: Timers.Timers
  /** Milliseconds since the epoch. */
  readonly now: () => number
  /** Messages that are settled for good, and may come again because their delete was lost. */
  readonly settled: Remembered["settled"]
  readonly sources: Sources
  /** A delivery has ended. */
  readonly onEnd: () => void
  /** Deletes a message that is settled already. */
  readonly discard: (message: Message) => void
}): InFlight => {
  const { fifo, settled, timers, visibilityTimeout } = env
  const deliveries = new Set<Delivery.Delivery>()
  const held = new Set<Delivery.Delivery>()

  const ended: InFlight["ended"] = (delivery) => {
    deliveries.delete(delivery)
    held.delete(delivery)
    env.onEnd()
  }

  /** Ends deliveries whose lease has ended, as the core gives up some of them without a word. */
  const expire = (): void => {
    timers.after(visibilityTimeout / 3, () => {
      const now = timers.now()
      for (const delivery of deliveries) if (Receipt.isExpired(Receipt.receiptOf(delivery), now)) ended(delivery)
      expire()
    })
  }
  expire()

  return {
    deliveries,
    received: (message) => {
      const { MessageId = "" } = message
      if (settled.has(MessageId)) {
        env.discard(message)
        return undefined
      }
      const receivedAt = timers.now()
      const before = env.sources.before(message)
      const leaseEnds = receivedAt + visibilityTimeout
      const receipt = Receipt.make(message, { fifo, receivedAt, leaseEnds, countsHere: !before.isShared })
      const context = { uncounted: 0, before: before.count, now: env.now() }
      // A copy would ask for its native facts.
      const delivery = Object.assign(toDelivery(message, context), { group: receipt.group, receipt })
      originals.set(delivery.body, receipt.attributes)
      deliveries.add(delivery)
      return delivery
    },
    ended,
    held: (delivery) => void held.add(delivery),
    heldCount: () => held.size
  }
}
