/** From a message of Acme to a delivery. Pure. */
import { type Delivery, Metadata } from "@requeue/core/port"
import type { Received } from "../client.ts"

/** A message without Requeue's metadata is a foreign producer's: its id is made from Acme's, and stays the same. */
export const toDelivery = (received: Received): Omit<Delivery.Delivery, "receipt"> => {
  const { [Metadata.header]: encoded, ...headers } = received.headers
  const known = encoded === undefined ? undefined : Metadata.decode(encoded)
  const metadata = known ?? Metadata.make(`acme-${received.id}`, received.publishedAt)
  return {
    body: received.body,
    // A header of this name that is not Requeue's belongs to the foreign producer. Frozen, because a handler sees them.
    headers: Object.freeze(known === undefined ? { ...received.headers } : headers),
    attempts: metadata.attempts + received.deliveries,
    metadata
  }
}
