/**
 * Bounded maps: a bounded map keeps the keys that were set last, and forgets older ones.
 *
 * When to use: to remember messages that may be delivered again, such as those whose settlement never reached the broker.
 * Nothing tells when they will not come any more, so that the memory needs a bound.
 *
 * @example
 * ```ts
 * import { BoundedMap } from "@requeue/core/port"
 *
 * const settled = BoundedMap.make<true>(10_000)
 * settled.set("m1", true)
 * settled.has("m1") // => true
 * ```
 */

/** A map with text as keys. Every operation takes constant time. */
export interface BoundedMap<A> {
  /** Sets the value of a key, which becomes the youngest. */
  readonly set: (key: string, value: A) => void
  /** The value of a key; `undefined` when it was never set, or is deleted or forgotten. */
  readonly get: (key: string) => A | undefined
  readonly has: (key: string) => boolean
  readonly delete: (key: string) => void
  readonly isEmpty: () => boolean
}

/**
 * Makes an empty map. It keeps the last `limit` keys, and up to as many before them, which it forgets all at once. A limit
 * of 0 keeps none.
 *
 * @throws RangeError when the limit is not a whole number, 0 or more
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
