/**
 * The properties of browsed messages, by their bodies. The core publishes a redriven letter as it publishes any message; the
 * body is the delivered one itself, which no other message has, and tells that it is a copy. No consumer's messages are noted:
 * a place in this map costs a sixth of a delivery.
 */
import type { Properties } from "../client.ts"

const originals = new WeakMap<Uint8Array, Properties>()

/** Must be called for each message that a browser shows. */
export const note = (body: Uint8Array, properties: Properties): void => void originals.set(body, properties)

/** The properties of the delivery that had this body; `undefined` for the body of a new message. */
export const find = (body: Uint8Array): Properties | undefined => originals.get(body)
