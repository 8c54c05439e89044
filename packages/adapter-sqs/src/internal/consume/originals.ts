/**
 * The browsed messages of which operators publish copies, keyed by body. The core publishes a redriven letter like any
 * message. Its body is the same object as that of the browsed message, which identifies it as a copy.
 */
import type { MessageAttributeValue } from "../client.ts"

type Attributes = Readonly<Record<string, MessageAttributeValue>>

/** The attributes of browsed messages, if they hold headers. */
export const originals = new WeakMap<Uint8Array, Attributes>()

const sources = new WeakMap<Uint8Array, string>()

/** Remembers SQS's id of a browsed message. */
export const note = (body: Uint8Array, messageId: string): void => void sources.set(body, messageId)

/** Returns SQS's id of the browsed message, or the name from {@link named}; `undefined` for other bodies. */
export const sourceOf = (body: Uint8Array): string | undefined => sources.get(body)

/**
 * Returns a name for a copy of a message that was not browsed here, such as an import. It stays the same for repeated
 * publishes.
 */
export const named = (body: Uint8Array): string => {
  const name = crypto.randomUUID()
  note(body, name)
  return name
}
