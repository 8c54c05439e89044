/** Publishers that wait for room, first come, first served. Leaving early costs O(1). */

/** The queue. */
export interface WaitQueue<A> {
  readonly size: () => number
  readonly add: (waiter: A) => void
  readonly remove: (waiter: A) => void
  /** Takes the first; `undefined` when nobody waits. */
  readonly take: () => A | undefined
}

/** An empty queue. */
export const make = <A>(): WaitQueue<A> => {
  const set = new Set<A>()
  // One iterator for good: a new one would first step over the traces of all who left. It never comes to its end,
  // because it is asked only when somebody is ahead of it, and whoever it passes leaves.
  const cursor = set.values()
  return {
    size: () => set.size,
    add: (waiter) => void set.add(waiter),
    remove: (waiter) => void set.delete(waiter),
    take: () => {
      if (set.size === 0) return undefined
      const { value } = cursor.next()
      if (value !== undefined) set.delete(value)
      return value
    }
  }
}
