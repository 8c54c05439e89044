/** The receipt of a delivery. */
import type { Bag, Delivery, Timers } from "@requeue/core/adapter-kit"
import type { Consumer, StoredMessage } from "../queues.ts"

/**
 * A message that was delivered and is not settled. Each delivery has a receipt of its own, so that a stale receipt
 * settles nothing.
 */
export class Receipt implements Bag.Member {
  readonly consumer: Consumer
  readonly message: StoredMessage
  /** Receipts are numbered in the order of delivery. */
  readonly number: number
  /** The latest end of its lease, in monotonic milliseconds. */
  until: number | undefined = undefined
  expiry: Timers.Timer | undefined = undefined
  place = -1
  constructor(consumer: Consumer, message: StoredMessage, number: number) {
    this.consumer = consumer
    this.message = message
    this.number = number
  }
}

/** The receipt of a delivery; `undefined` when it was settled before, lost, or is another subscription's. */
export const receiptOf = (consumer: Consumer, { receipt }: Delivery.Delivery): Receipt | undefined =>
  receipt instanceof Receipt && receipt.consumer === consumer && receipt.place !== -1 ? receipt : undefined
