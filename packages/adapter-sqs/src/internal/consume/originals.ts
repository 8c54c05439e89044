/**
 * The attributes of delivered messages, by their bodies. The core publishes a redriven letter as it publishes any message; its
 * body is the delivered one itself, which no other message has, and tells that it is a copy.
 */
import type { MessageAttributeValue } from "../client.ts"

type Attributes = Readonly<Record<string, MessageAttributeValue>>

/** An entry for each delivery whose attributes hold headers. */
export const originals = new WeakMap<Uint8Array, Attributes>()
