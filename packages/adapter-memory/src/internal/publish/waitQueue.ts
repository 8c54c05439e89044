/** Publishers that wait for room, first come, first served. Every operation takes constant time. */

export interface WaitQueue<A> {
  readonly size: () => number
  readonly add: (waiter: A) => void
  readonly remove: (waiter: A) => void
  /** Removes and returns the first; `undefined` if the queue is empty. */
  readonly take: () => A | undefined
}

export const make = <A>(): WaitQueue<A> => {
  const set = new Set<A>()
  // One permanent iterator: a new one would first skip the slots of all removed waiters. It never ends, because it is
  // advanced only while the set is not empty, and every waiter that it passes is removed.
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
