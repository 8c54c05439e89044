/** Converts stored messages to deliveries. Pure. */
import type { Delivery } from "@requeue/core/port"
import { Receipt, type StoredMessage } from "../queues.ts"

/** Returns the `deliveries`th delivery of this copy. `receipt`: default none. */
export const toDelivery = (message: StoredMessage, deliveries: number, receipt?: Receipt): Delivery.Delivery => ({
  body: message.body,
  headers: message.headers,
  attempts: message.metadata.attempts + deliveries,
  metadata: message.metadata,
  redelivered: deliveries > 1,
  ...(message.place === undefined ? undefined : { place: message.place }),
  ...(message.fairBy === undefined ? undefined : { fairBy: message.fairBy }),
  receipt
})

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
