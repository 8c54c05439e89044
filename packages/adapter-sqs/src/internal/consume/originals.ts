/**
 * The attributes of delivered messages, by their bodies. The core publishes a redriven letter as it publishes any message; its
 * body is the delivered one itself, which no other message has, and tells that it is a copy.
 */
import type { Delivery } from "@requeue/core/adapter-kit"
import type { MessageAttributeValue } from "../client.ts"
import * as Wire from "../wire.ts"

type Attributes = Readonly<Record<string, MessageAttributeValue>>

const originals = new WeakMap<Uint8Array, Attributes>()

/** The attributes of the delivery with this body; `undefined` where they hold no headers. */
export const of = (body: Uint8Array): Attributes | undefined => originals.get(body)

/** Entries of a weak map are work for the collector, and a copy has no use for attributes that hold no headers. */
export const note = ({ body }: Delivery.Delivery, attributes: Attributes = {}): void => {
  if (Wire.hasHeaders(attributes)) originals.set(body, attributes)
}
