/**
 * The ready messages of a queue, first in, first out, as a linked list. Adding and taking cost O(1), and a message that
 * comes back takes its old place again.
 */

/** The fields that the list needs of its members. Both are the list's own. */
export interface Member<A> {
  position: number
  next: A | undefined
}

/** The list. Iterating goes from head to tail. */
export interface ReadyQueue<A> extends Iterable<A> {
  readonly size: () => number
  /** Adds a member at the tail. */
  readonly append: (member: A) => void
  /** Puts a member that was taken back to its place: ahead of all that stood behind it. */
  readonly putBack: (member: A) => void
  /** Takes the head; `undefined` when the list is empty. */
  readonly take: () => A | undefined
  readonly clear: () => void
}

/** An empty list. */
export const make = <A extends Member<A>>(): ReadyQueue<A> => {
  let head: A | undefined
  let tail: A | undefined
  /** The member that came back last, as long as it is in the list. Members that come back in order need no walk. */
  let returned: A | undefined
  let size = 0
  let positions = 0

  const insertAfter = (before: A | undefined, member: A): void => {
    member.next = before === undefined ? head : before.next
    if (before === undefined) head = member
    else before.next = member
    if (member.next === undefined) tail = member
    size++
  }

  return {
    size: () => size,
    append: (member) => {
      member.position = positions++
      insertAfter(tail, member)
    },
    putBack: (member) => {
      // Members that never left stand behind it, so the walk passes only those that came back before.
      let before = returned !== undefined && returned.position < member.position ? returned : undefined
      let after = before === undefined ? head : before.next
      for (; after !== undefined && after.position < member.position; after = after.next) before = after
      insertAfter(before, member)
      returned = member
    },
    take: () => {
      const member = head
      if (member === undefined) return undefined
      head = member.next
      if (head === undefined) tail = undefined
      if (returned === member) returned = undefined
      member.next = undefined
      size--
      return member
    },
    clear: () => {
      head = tail = returned = undefined
      size = 0
    },
    *[Symbol.iterator]() {
      for (let at = head; at !== undefined; at = at.next) yield at
    }
  }
}
