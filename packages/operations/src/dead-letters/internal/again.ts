/**
 * Knows letters that come again: those that the sweep moved to the tail, and those that were lost with their lease or
 * connection. Where the broker does not name copies, the engine cannot tell, and metadata is all there is to know them by.
 * A foreign producer can repeat it, so that no letter is removed for that.
 */
import type { Delivery, Metadata } from "@requeue/core"
import { BoundedMap } from "@requeue/core/adapter-kit"
import type { Letter } from "./letter.ts"

export interface Again {
  /** Must be called when a letter has been judged. */
  readonly judged: (letter: Letter) => void
  /** Must be called before the copy of a letter is published behind the others. */
  readonly moving: (letter: Letter) => void
  readonly removed: (letter: Letter) => void
  /** The same letter as it was delivered before; `"moved"` for a copy at the tail; `undefined` for one not seen yet. */
  readonly recognise: (letter: Letter) => Letter | "moved" | undefined
}

/** Moved letters that are known; the oldest are forgotten first. */
const movedLimit = 100_000

/** All that there is to know a letter by where the broker does not name copies. */
export const keyOf = ({ deadLetter, firstPublished, id, redrives }: Metadata.Metadata): string =>
  JSON.stringify([id, firstPublished, redrives, deadLetter?.at])

/** `identify` answers the broker's name of a copy. */
export const make = (identify: (letter: Delivery.Delivery) => string | undefined): Again => {
  const judged = new Map<string, Letter>()
  const moved = BoundedMap.make<true>(movedLimit)
  const nameOf = (letter: Letter): string => identify(letter.item.delivery) ?? keyOf(letter.item.delivery.metadata)
  return {
    judged: (letter) => void judged.set(nameOf(letter), letter),
    moving: (letter) => moved.set(keyOf(letter.item.delivery.metadata), true),
    removed: (letter) => void judged.delete(nameOf(letter)),
    recognise: (letter) => {
      const known = letter.item.delivery.redelivered === false ? undefined : judged.get(nameOf(letter))
      return known ?? (moved.has(keyOf(letter.item.delivery.metadata)) ? "moved" : undefined)
    }
  }
}
