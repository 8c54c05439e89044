/**
 * Bounded maps keep the keys that were set last, and forget older ones.
 *
 * When to use: to remember messages that may be redelivered, such as those whose settlement never reached the broker.
 * Nothing reports when such messages can no longer arrive, so the memory needs a bound.
 */

/** A map with text keys. Every operation takes constant time. */
export interface BoundedMap<A> {
  /** Sets the value of a key, which becomes the newest. */
  readonly set: (key: string, value: A) => void
  readonly get: (key: string) => A | undefined
  readonly has: (key: string) => boolean
  readonly delete: (key: string) => void
  readonly isEmpty: () => boolean
}

/**
 * Makes an empty map. The map keeps the `limit` keys that were set last, and sometimes older ones, because it forgets
 * `limit` keys together. It has fewer than `2 x limit` keys. With a limit of 0, it keeps no keys.
 *
 * @throws RangeError when the limit is not a whole number >= 0
 */
export const make = <A>(limit: number): BoundedMap<A> => {
  if (!(Number.isSafeInteger(limit) && limit >= 0)) {
    throw new RangeError(`BoundedMap.make: limit must be a whole number >= 0, got ${limit}`)
  }
  let recent = new Map<string, A>()
  let older = new Map<string, A>()
  return {
    set: (key, value) => {
      if (limit === 0) return
      recent.set(key, value)
      if (recent.size < limit) return
      older = recent
      recent = new Map()
    },
    get: (key) => (recent.has(key) ? recent.get(key) : older.get(key)),
    has: (key) => recent.has(key) || older.has(key),
    delete: (key) => {
      recent.delete(key)
      older.delete(key)
    },
    isEmpty: () => recent.size === 0 && older.size === 0
  }
}
