/**
 * Maps the bodies of browsed messages to their properties. Core publishes a redriven letter like any message; its body
 * is the very object that was delivered, so it identifies the letter as a copy. Consumed messages are not noted,
 * because an entry costs a sixth of a delivery.
 */
import type { Properties } from "../client.ts"

const originals = new WeakMap<Uint8Array, Properties>()

/** Must be called for each message that a browser shows. */
export const note = (body: Uint8Array, properties: Properties): void => void originals.set(body, properties)

/** Returns the properties of the delivery that had this body; `undefined` for a new body. */
export const find = (body: Uint8Array): Properties | undefined => originals.get(body)
