/**
 * A queue's ready messages, first come first served, as a linked list: O(1) at both ends, and a message that comes back
 * takes its old place again.
 */

/** What the line needs of its members; it owns both fields. */
export interface Member<A> {
  position: number
  next: A | undefined
}

export interface Line<A> extends Iterable<A> {
  readonly size: () => number
  /** Joins at the tail. */
  readonly append: (member: A) => void
  /** Puts a member that was taken back where it was: ahead of all that stood behind it. */
  readonly putBack: (member: A) => void
  /** Takes the head. */
  readonly take: () => A | undefined
  readonly clear: () => void
}

export const make = <A extends Member<A>>(): Line<A> => {
  let head: A | undefined
  let tail: A | undefined
  /** Who came back last, as long as it stands here: those who come back in their order need not walk. */
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
      // Whatever never left stands behind it, so the walk passes only others that came back before.
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
