/** The deliveries of one subscription in flight: received, but neither settled nor lost. */
import { Bag, type Broker, type Delivery, Settlement, type Timers, TransientMap } from "@requeue/core/port"
import type { Settings } from "../../SqsOptions.ts"
import type { Message } from "../client.ts"
import { arrived } from "./arrival.ts"
import * as Receipt from "./receipt.ts"
import type { Remembered } from "./remembered.ts"
import type { Sources } from "./sources.ts"

/** Deliveries from their receipt to their end. */
export interface InFlight {
  readonly deliveries: () => ReadonlyArray<Delivery.Delivery>
  readonly size: () => number
  /** Adds a message; returns `undefined` for a settled one, and discards it. */
  readonly received: (message: Message) => Delivery.Delivery | undefined
  /** A delivery is no longer in flight: its message has left the queue or was returned to it. */
  readonly ended: (delivery: Delivery.Delivery, how: "gone" | "returned") => void
  /** A settlement has failed, and the delivery is still held. */
  readonly held: (delivery: Delivery.Delivery) => void
  /** Number of deliveries whose settlement has failed: they may stay for a long time. */
  readonly heldCount: () => number
  /** Returns deliveries that reached no handler, although SQS has counted their receive. */
  readonly giveBack: (unseen: ReadonlyArray<Delivery.Delivery>) => void
}

/** Makes requests that return deliveries immediately. */
export const releases = (deliveries: ReadonlyArray<Delivery.Delivery>): ReadonlyArray<Broker.SettleRequest> =>
  deliveries.map((delivery) => ({ delivery, settlement: Settlement.Release() }))

/**
 * Starts with nothing in flight.
 *
 * Long, because its functions share the receipts.
 */
export const make = (env: {
  readonly queue: string
  readonly fifo: boolean
  readonly settings: Pick<Settings, "fifoRetry" | "visibilityTimeout">
  readonly timers: Timers.Timers
  /** Milliseconds since the epoch. */
  readonly now: () => number
  readonly remembered: Remembered
  readonly sources: Sources
  /** A delivery has ended. */
  readonly onEnd: () => void
  /** Returns deliveries to the queue. */
  readonly release: (deliveries: ReadonlyArray<Delivery.Delivery>) => void
  /** Deletes a message that was settled before. */
  readonly discard: (message: Message) => void
}): InFlight => {
  const { fifo, remembered, settings, timers } = env
  const { fifoRetry, visibilityTimeout } = settings
  const receipts = Bag.make<Receipt.Receipt>()
  const held = new Set<Receipt.Receipt>()
  /** The last delivery of each message: the core settles no earlier one, whose receipt may still work. */
  const last = TransientMap.make<Delivery.Delivery>()

  const deliveries = () => Array.from(receipts).flatMap(({ delivery }) => delivery ?? [])

  const giveBack: InFlight["giveBack"] = (unseen) => {
    for (const delivery of unseen) remembered.addUncounted(Receipt.receiptOf(delivery).messageId)
    env.release(unseen)
  }

  const ended: InFlight["ended"] = (delivery, how) => {
    const receipt = Receipt.receiptOf(delivery)
    receipts.delete(receipt)
    held.delete(receipt)
    if (last.get(receipt.messageId) === delivery) last.delete(receipt.messageId)
    if (how === "gone") remembered.forgetUncounted(receipt.messageId)
    env.onEnd()
  }

  /** Ends deliveries whose lease has ended: the core drops some of them silently. */
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
        queue: env.queue,
        fifoRetry
      }
      const delivery = arrived(message, context, receipt.group, receipt)
      receipt.delivery = delivery
      receipts.add(receipt)
      const earlier = last.get(MessageId)
      if (earlier !== undefined && !Receipt.receiptOf(earlier).isSettling) ended(earlier, "returned")
      last.set(MessageId, delivery)
      return delivery
    },
    ended,
    held: (delivery) => void held.add(Receipt.receiptOf(delivery)),
    heldCount: () => held.size,
    giveBack
  }
}
