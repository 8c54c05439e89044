/** Converts stored messages to deliveries. Pure. */
import type { Delivery } from "@requeue/core/port"
import { Receipt, type StoredMessage } from "../queues.ts"

/** Returns the `deliveries`th delivery of this copy. `receipt`: default none. */
export const toDelivery = (message: StoredMessage, deliveries: number, receipt?: Receipt): Delivery.Delivery =>
  new HandedOut(message, deliveries, receipt)

/** A class: see `ShortList`. */
class HandedOut implements Delivery.Delivery {
  readonly body: Uint8Array
  readonly headers: Delivery.Delivery["headers"]
  readonly attempts: number
  readonly metadata: Delivery.Delivery["metadata"]
  readonly redelivered: boolean
  declare readonly place?: Delivery.Delivery["place"]
  declare readonly fairBy?: string
  readonly receipt: Receipt | undefined

  constructor({ body, fairBy, headers, metadata, place }: StoredMessage, deliveries: number, receipt?: Receipt) {
    this.body = body
    this.headers = headers
    this.attempts = metadata.attempts + deliveries
    this.metadata = metadata
    this.redelivered = deliveries > 1
    if (place !== undefined) this.place = place
    if (fairBy !== undefined) this.fairBy = fairBy
    this.receipt = receipt
  }
}

/** Returns the delivery that its consumer has. */
export const deliveryOf = (receipt: Receipt): Delivery.Delivery =>
  toDelivery(receipt.message, receipt.message.deliveries, receipt)

/** Returns a message as the next consumer would see it. */
export const nextDelivery = (message: StoredMessage): Delivery.Delivery => toDelivery(message, message.deliveries + 1)

let lastName = 0
const names = new WeakMap<StoredMessage, string>()

/** Returns the name of a stored message, which it keeps while it is in its queue. */
export const identify = ({ receipt }: Delivery.Delivery): string | undefined => {
  if (!(receipt instanceof Receipt)) return undefined
  const existing = names.get(receipt.message)
  if (existing !== undefined) return existing
  const name = String(++lastName)
  names.set(receipt.message, name)
  return name
}
