/** From a stored message to a delivery. Pure. */
import type { Delivery } from "@requeue/core/adapter-kit"
import type { Receipt, StoredMessage } from "../queues.ts"

/**
 * A message as a consumer sees it when this copy is delivered for the `deliveries`th time. Default: without a receipt.
 */
export const toDelivery = (message: StoredMessage, deliveries: number, receipt?: Receipt): Delivery.Delivery => ({
  body: message.body,
  headers: message.headers,
  attempts: message.metadata.attempts + deliveries,
  metadata: message.metadata,
  receipt
})

/** The delivery that its consumer has. */
export const deliveryOf = (receipt: Receipt): Delivery.Delivery =>
  toDelivery(receipt.message, receipt.message.deliveries, receipt)

/** A message as the next consumer would see it. */
export const nextDelivery = (message: StoredMessage): Delivery.Delivery => toDelivery(message, message.deliveries + 1)
