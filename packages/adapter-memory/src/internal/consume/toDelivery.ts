/** From a stored message to a delivery. Pure. */
import type { Delivery } from "@requeue/core/port"
import { Receipt, type StoredMessage } from "../queues.ts"

/**
 * A message as a consumer sees it when this copy is delivered for the `deliveries`th time. Default: without a receipt.
 */
export const toDelivery = (message: StoredMessage, deliveries: number, receipt?: Receipt): Delivery.Delivery => ({
  body: message.body,
  headers: message.headers,
  attempts: message.metadata.attempts + deliveries,
  metadata: message.metadata,
  redelivered: deliveries > 1,
  receipt
})

/** The delivery that its consumer has. */
export const deliveryOf = (receipt: Receipt): Delivery.Delivery =>
  toDelivery(receipt.message, receipt.message.deliveries, receipt)

/** A message as the next consumer would see it. */
export const nextDelivery = (message: StoredMessage): Delivery.Delivery => toDelivery(message, message.deliveries + 1)

let lastName = 0
const names = new WeakMap<StoredMessage, string>()

/** The name of a stored message, which lasts as long as it is in its queue. */
export const identify = ({ receipt }: Delivery.Delivery): string | undefined => {
  if (!(receipt instanceof Receipt)) return undefined
  const known = names.get(receipt.message)
  if (known !== undefined) return known
  const name = String(++lastName)
  names.set(receipt.message, name)
  return name
}
