/** The deliveries of one subscription that are in flight: received, and neither settled nor lost. */
import { Bag, type Broker, type Delivery, Settlement, type Timers } from "@requeue/core/port"
import type { Message } from "../client.ts"
import { arrived } from "./arrival.ts"
import * as Receipt from "./receipt.ts"
import type { Remembered } from "./remembered.ts"
import type { Sources } from "./sources.ts"

/** Deliveries from their receipt to their end. */
export interface InFlight {
  readonly deliveries: () => ReadonlyArray<Delivery.Delivery>
  readonly size: () => number
  /** Takes a message in; answers `undefined` for one that is settled already, and discards it. */
  readonly received: (message: Message) => Delivery.Delivery | undefined
  /** A delivery is no longer in flight: its message has left the queue, or is in it again. */
  readonly ended: (delivery: Delivery.Delivery, how: "gone" | "returned") => void
  /** A settlement of a delivery has failed, and it is still ours. */
  readonly held: (delivery: Delivery.Delivery) => void
  /** The number of deliveries whose settlement has failed: they may stay for long. */
  readonly heldCount: () => number
  /** Gives back deliveries that no handler has seen, and whose receive SQS has counted all the same. */
  readonly giveBack: (unseen: ReadonlyArray<Delivery.Delivery>) => void
}

/** Requests that give deliveries back at once. */
export const releases = (deliveries: ReadonlyArray<Delivery.Delivery>): ReadonlyArray<Broker.SettleRequest> =>
  deliveries.map((delivery) => ({ delivery, settlement: Settlement.Release() }))

/** Nothing is in flight yet. */
export const make = (env: {
  readonly queue: string
  readonly fifo: boolean
  /** Milliseconds of a lease. */
  readonly visibilityTimeout: number
  readonly timers: Timers.Timers
  /** Milliseconds since the epoch. */
  readonly now: () => number
  readonly remembered: Remembered
  readonly sources: Sources
  /** A delivery has ended. */
  readonly onEnd: () => void
  /** Gives deliveries back to the queue. */
  readonly release: (deliveries: ReadonlyArray<Delivery.Delivery>) => void
  /** Deletes a message that is settled already. */
  readonly discard: (message: Message) => void
}): InFlight => {
  const { fifo, remembered, timers, visibilityTimeout } = env
  const receipts = Bag.make<Receipt.Receipt>()
  const held = new Set<Receipt.Receipt>()

  const deliveries = () => Array.from(receipts).flatMap(({ delivery }) => delivery ?? [])

  const giveBack: InFlight["giveBack"] = (unseen) => {
    for (const delivery of unseen) remembered.addUncounted(Receipt.receiptOf(delivery).messageId)
    env.release(unseen)
  }

  const ended: InFlight["ended"] = (delivery, how) => {
    const receipt = Receipt.receiptOf(delivery)
    receipts.delete(receipt)
    held.delete(receipt)
    if (how === "gone") remembered.forgetUncounted(receipt.messageId)
    env.onEnd()
  }

  /** Ends deliveries whose lease has ended, as the core gives up some of them without a word. */
  const expire = (): void => {
    timers.after(visibilityTimeout / 3, () => {
      const now = timers.now()
      for (const delivery of deliveries())
        if (Receipt.isExpired(Receipt.receiptOf(delivery), now)) ended(delivery, "returned")
      expire()
    })
  }
  expire()

  return {
    deliveries,
    size: receipts.size,
    received: (message) => {
      const { MessageId = "" } = message
      if (remembered.settled.has(MessageId)) {
        env.discard(message)
        return undefined
      }
      const receivedAt = timers.now()
      const before = env.sources.before(message)
      const leaseEnds = receivedAt + visibilityTimeout
      const receipt = Receipt.make(message, { fifo, receivedAt, leaseEnds, countsHere: !before.isShared })
      const context = {
        uncounted: remembered.uncounted(MessageId),
        before: before.count,
        now: env.now(),
        queue: env.queue
      }
      const delivery = arrived(message, context, receipt.group, receipt)
      receipt.delivery = delivery
      receipts.add(receipt)
      return delivery
    },
    ended,
    held: (delivery) => void held.add(Receipt.receiptOf(delivery)),
    heldCount: () => held.size,
    giveBack
  }
}
