/** Those who wait for room, first come first served; leaving early is O(1). */

export interface Waiters<A> {
  readonly size: () => number
  readonly add: (waiter: A) => void
  readonly remove: (waiter: A) => void
  readonly take: () => A | undefined
}

export const make = <A>(): Waiters<A> => {
  const set = new Set<A>()
  // One iterator that goes on: a new one would first step over every waiter that was taken since the set's last rehash.
  let cursor = set.values()
  return {
    size: () => set.size,
    add: (waiter) => void set.add(waiter),
    remove: (waiter) => void set.delete(waiter),
    take: () => {
      if (set.size === 0) return undefined
      let next = cursor.next()
      if (next.done === true) next = (cursor = set.values()).next()
      set.delete(next.value as A)
      return next.value
    }
  }
}
