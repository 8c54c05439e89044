/**
 * The letters of which operators publish copies, by their bodies. The core publishes a redriven letter as it publishes any message; its
 * body is the delivered one itself, which no other message has, and tells that it is a copy.
 */
import type { MessageAttributeValue } from "../client.ts"

type Attributes = Readonly<Record<string, MessageAttributeValue>>

/** The attributes of browsed messages: an entry for each whose attributes hold headers. */
export const originals = new WeakMap<Uint8Array, Attributes>()

const sources = new WeakMap<Uint8Array, string>()

/** Keeps SQS's id of the message that was browsed. */
export const note = (body: Uint8Array, messageId: string): void => void sources.set(body, messageId)

/** SQS's id of the message that was browsed, or the name that {@link named} gave; `undefined` of any other body. */
export const sourceOf = (body: Uint8Array): string | undefined => sources.get(body)

/** A name for a copy whose message nobody browsed here, as of an import: the same whenever it is published again. */
export const named = (body: Uint8Array): string => {
  const name = crypto.randomUUID()
  note(body, name)
  return name
}
