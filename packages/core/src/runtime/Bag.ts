/**
 * Bags: a bag holds objects in no order. Adding and removing take constant time and allocate nothing.
 *
 * When to use: instead of a `Set` that every message enters and leaves, in a consumer or an adapter. Such a `Set` is
 * rebuilt again and again; its former tables keep their members alive until the next full garbage collection.
 *
 * @example
 * ```ts
 * import { Bag } from "@requeue/core/port"
 *
 * const bag = Bag.make<Bag.Member & { readonly id: string }>()
 * const job = { id: "m1", place: -1 }
 * bag.add(job)
 * Array.from(bag, ({ id }) => id) // => ["m1"]
 * ```
 */

/** A member of a bag. It can be in one bag at a time. */
export interface Member {
  /** Its place in the bag, -1 outside. Only the bag changes it. */
  place: number
}

/** A bag. It may change while it is iterated, which goes through those who were members at the start. */
export interface Bag<A extends Member> extends Iterable<A> {
  readonly size: () => number
  /** Adds a member that is in no bag. */
  readonly add: (member: A) => void
  /** Removes a member. Does nothing for one that is not in the bag. */
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
