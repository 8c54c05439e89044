/**
 * What is in hand at the moment, in no order; adding and removing cost nothing.
 *
 * When to use: for what every message goes through, in a consumer or an adapter, instead of a `Set`.
 *
 * A `Set` that is entered and left all the time is rebuilt all the time. Each table that it gives up still names those
 * who were in it, and as soon as one table has grown old, all of them live until the next full garbage collection.
 */

/** It may be in one bag at a time. */
export interface Member {
  /** Its place in the bag, -1 outside; the bag's own. */
  place: number
}

export interface Bag<A extends Member> extends Iterable<A> {
  readonly size: () => number
  readonly add: (member: A) => void
  /** Does nothing when it is not in. */
  readonly delete: (member: A) => void
}

/** An empty bag. */
export const make = <A extends Member>(): Bag<A> => {
  const members: Array<A> = []
  return {
    size: () => members.length,
    add: (member) => {
      member.place = members.push(member) - 1
    },
    delete: (member) => {
      if (member.place === -1) return
      const last = members.pop()!
      // The last one takes the place that becomes free.
      if (last !== member) {
        members[member.place] = last
        last.place = member.place
      }
      member.place = -1
    },
    [Symbol.iterator]: () => members.slice().values()
  }
}
