/**
 * Knows letters that the broker shows again after it has opened its queue anew. Where the broker does not name copies,
 * metadata is all there is to know a letter by. A producer can repeat metadata, so no letter is removed for it.
 */
import type { Broker, Delivery } from "@requeue/core"
import type { Metadata } from "@requeue/core/adapter-kit"

/** - `passed`: it stays. - `published`: its copy is there, and it is to be removed. */
type State = "passed" | "published"

export interface Seen {
  readonly set: (letter: Delivery.Delivery, state: State) => void
  /** Forgets a letter that is gone. */
  readonly forget: (letter: Delivery.Delivery) => void
  /** `alike`: it may be one that was seen, or another with the same metadata. `undefined`: it was not seen. */
  readonly find: (letter: Delivery.Delivery) => State | "alike" | undefined
}

/** Identifies a letter where the broker does not name copies. */
export const keyOf = ({ deadLetter, firstPublished, id, redrives }: Metadata.Metadata): string =>
  JSON.stringify([id, firstPublished, redrives, deadLetter?.at])

export const make = (identify: Broker.Browser["identify"]): Seen => {
  const named = new Map<string, State>()
  const alike = new Set<string>()
  return {
    set: (letter, state) => {
      const name = identify(letter)
      if (name === undefined) alike.add(keyOf(letter.metadata))
      else named.set(name, state)
    },
    forget: (letter) => {
      const name = identify(letter)
      if (name !== undefined) named.delete(name)
    },
    find: (letter) => {
      const name = identify(letter)
      if (name !== undefined) return named.get(name)
      return letter.redelivered !== false && alike.has(keyOf(letter.metadata)) ? "alike" : undefined
    }
  }
}
