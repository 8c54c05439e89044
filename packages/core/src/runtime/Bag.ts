/**
 * Bags hold objects in no order. Adding and removing take constant time and allocate nothing.
 *
 * When to use: instead of a `Set` that every message enters and leaves. A `Set` is rebuilt repeatedly, and its old tables
 * keep their members alive until the next full garbage collection.
 */

/** A member of a bag. It can be in one bag at a time. */
export interface Member {
  /** The member's index in the bag; -1 if it is in no bag. Only the bag changes it. */
  place: number
}

/** A bag. It may change during an iteration, which visits the members that were in the bag at the start. */
export interface Bag<A extends Member> extends Iterable<A> {
  readonly size: () => number
  /** Adds a member that is in no bag. */
  readonly add: (member: A) => void
  /** Removes a member, if it is in the bag. */
  readonly delete: (member: A) => void
}

/** Makes an empty bag. */
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
      // The last member moves to the free place.
      if (last !== member) {
        members[member.place] = last
        last.place = member.place
      }
      member.place = -1
    },
    [Symbol.iterator]: () => members.slice().values()
  }
}
