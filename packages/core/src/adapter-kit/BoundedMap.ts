/**
 * A map that keeps what was set last, and forgets the oldest.
 *
 * When to use: for what a process knows of messages that may come again, such as those that it has settled and the broker
 * has not heard of. Nobody says when they will never come, so that the memory must have an end.
 *
 * @example
 * ```ts
 * import { BoundedMap } from "@requeue/core/adapter-kit"
 *
 * const settled = BoundedMap.make<true>(10_000)
 * settled.set("m1", true)
 * settled.has("m1") // => true
 * ```
 */

/** A map by text. Every operation takes constant time. */
export interface BoundedMap<A> {
  /** Sets the value of a key, which is the youngest from now on. */
  readonly set: (key: string, value: A) => void
  /** The value of a key; `undefined` when it was never set, deleted, or forgotten. */
  readonly get: (key: string) => A | undefined
  readonly has: (key: string) => boolean
  readonly delete: (key: string) => void
  readonly isEmpty: () => boolean
}

/**
 * An empty map. It keeps the last `limit` keys and up to as many before them, which are forgotten together: that costs
 * nothing, however fast keys come and go. A limit of 0 keeps none.
 */
export const make = <A>(limit: number): BoundedMap<A> => {
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
