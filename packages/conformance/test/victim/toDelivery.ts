/** From a message in the file to a delivery. Pure. */
import { type Delivery, Metadata } from "@requeue/core/port"
import type { Row } from "./file.ts"

export const toDelivery = (
  { body, deliveries, headers, metadata: encoded, published, seq }: Row,
  receipt?: object
): Delivery.Delivery => {
  const metadata = Metadata.decode(encoded ?? "") ?? Metadata.make(`file-${seq}`, published)
  return {
    body: new Uint8Array(body),
    headers: Object.freeze(JSON.parse(headers)),
    attempts: metadata.attempts + deliveries,
    metadata,
    redelivered: deliveries > 1,
    receipt
  }
}
