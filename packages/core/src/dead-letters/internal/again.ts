/**
 * Knows letters that come again: those that the sweep moved to the tail, and those that were lost with their lease or
 * connection. Where the broker does not name copies, only a letter that was lost can come again, and the one that comes must be
 * like it in all that is known. A foreign producer can repeat all of that: each letter that comes stands for one that was lost,
 * and all others are new.
 */
import * as BoundedMap from "../../adapter-kit/BoundedMap.ts"
import type { Delivery } from "../../message/Delivery.ts"
import * as Metadata from "../../message/Metadata.ts"
import type { Letter } from "./letter.ts"

export interface Again {
  /** Must be called when a letter has been judged. */
  readonly judged: (letter: Letter) => void
  /** Must be called before the copy of a letter is published behind the others, and before each further try that may make two. */
  readonly moving: (letter: Letter) => void
  readonly removed: (letter: Letter) => void
  /** Must be called when a connection was lost, with whether that has lost a delivery. Default: it has lost all. */
  readonly reconnected: (isGone?: (delivery: Delivery) => boolean) => void
  /**
   * The same letter as it was delivered before; `"moved"` for a copy at the tail; `undefined` for one not seen yet. The letter
   * that is answered comes no second time, unless `judged` is called.
   */
  readonly recognise: (letter: Letter) => Letter | "moved" | undefined
}

/** Moved letters that are known; the oldest are forgotten first. */
const movedLimit = 100_000

type Content = Pick<Delivery, "body" | "headers">

/** Whether both have the same content; brokers keep headers in any order. */
export const isAlike = (one: Content, other: Content): boolean =>
  one.body.length === other.body.length &&
  Object.keys(one.headers).length === Object.keys(other.headers).length &&
  Object.entries(one.headers).every(([name, value]) => other.headers[name] === value) &&
  one.body.every((byte, index) => byte === other.body[index])

/** All that metadata tells of a letter. Each delivery of an undated letter has another time. */
export const keyOf = (metadata: Metadata.Metadata): string =>
  JSON.stringify([metadata.id, Metadata.publishedAt(metadata), metadata.redrives, metadata.deadLetter?.at])

/** `identify` answers the broker's name of a copy. */
export const make = (identify: (letter: Delivery) => string | undefined): Again => {
  const named = new Map<string, Letter>()
  const byKey = new Map<string, Set<Letter>>()
  /** The copies at the tail that have not come yet. */
  const moved = BoundedMap.make<number>(movedLimit)

  const forget = (letter: Letter): void => {
    const key = keyOf(letter.item.delivery.metadata)
    const letters = byKey.get(key)
    letters?.delete(letter)
    if (letters?.size === 0) byKey.delete(key)
  }

  const delivered = (letter: Letter): Letter | undefined => {
    const { delivery } = letter.item
    if (delivery.redelivered === false) return undefined
    const name = identify(delivery)
    if (name !== undefined) return named.get(name)
    for (const one of byKey.get(keyOf(delivery.metadata)) ?? [])
      if ((one.isLost || one.item.isLost) && isAlike(one.item.delivery, delivery)) return one
    return undefined
  }

  /** The copy has the time of the delivery that it was made from. */
  const movedKey = ({ deadLetter, firstPublished, id, redrives }: Metadata.Metadata): string =>
    keyOf({ ...Metadata.make(id, firstPublished), redrives, deadLetter })

  return {
    judged: (letter) => {
      const { delivery } = letter.item
      const name = identify(delivery)
      if (name !== undefined) named.set(name, letter)
      const key = keyOf(delivery.metadata)
      byKey.set(key, (byKey.get(key) ?? new Set()).add(letter))
    },
    moving: (letter) => {
      const key = movedKey(letter.item.delivery.metadata)
      moved.set(key, (moved.get(key) ?? 0) + 1)
    },
    removed: (letter) => {
      const name = identify(letter.item.delivery)
      if (name !== undefined) named.delete(name)
      forget(letter)
    },
    reconnected: (isGone = () => true) => {
      for (const letters of byKey.values())
        for (const letter of letters) if (isGone(letter.item.delivery)) letter.isLost = true
    },
    recognise: (letter) => {
      const known = delivered(letter)
      if (known !== undefined) {
        forget(known)
        return known
      }
      const key = keyOf(letter.item.delivery.metadata)
      const copies = moved.get(key) ?? 0
      if (copies === 0) return undefined
      moved.set(key, copies - 1)
      return "moved"
    }
  }
}
