/** Those who wait for room, first come first served; leaving early is O(1). */

export interface Waiters<A> {
  readonly size: () => number
  readonly add: (waiter: A) => void
  readonly remove: (waiter: A) => void
  readonly take: () => A | undefined
}

export const make = <A>(): Waiters<A> => {
  const set = new Set<A>()
  // One iterator for good: whoever it passes leaves, and a new one would first step over the traces of all who left. It
  // never comes to its end, because it is asked only when somebody is ahead of it.
  const cursor = set.values()
  return {
    size: () => set.size,
    add: (waiter) => void set.add(waiter),
    remove: (waiter) => void set.delete(waiter),
    take: () => {
      if (set.size === 0) return undefined
      const { value } = cursor.next()
      set.delete(value as A)
      return value
    }
  }
}
