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

/** A class, so that a queue costs one object and not a handful of closures: a producer may know thousands of them. */
class List<A extends Member<A>> implements ReadyQueue<A> {
  #head: A | undefined = undefined
  #tail: A | undefined = undefined
  /** The member that came back last, as long as it is in the list. Members that come back in order need no walk. */
  #returned: A | undefined = undefined
  #size = 0
  #positions = 0

  size(): number {
    return this.#size
  }

  append(member: A): void {
    member.position = this.#positions++
    this.#insertAfter(this.#tail, member)
  }

  putBack(member: A): void {
    const returned = this.#returned
    // Members that never left stand behind it, so the walk passes only those that came back before.
    let before = returned !== undefined && returned.position < member.position ? returned : undefined
    let after = before === undefined ? this.#head : before.next
    for (; after !== undefined && after.position < member.position; after = after.next) before = after
    this.#insertAfter(before, member)
    this.#returned = member
  }

  take(): A | undefined {
    const member = this.#head
    if (member === undefined) return undefined
    this.#head = member.next
    if (this.#head === undefined) this.#tail = undefined
    if (this.#returned === member) this.#returned = undefined
    member.next = undefined
    this.#size--
    return member
  }

  clear(): void {
    this.#head = this.#tail = this.#returned = undefined
    this.#size = 0
  }

  *[Symbol.iterator](): Generator<A> {
    for (let at = this.#head; at !== undefined; at = at.next) yield at
  }

  #insertAfter(before: A | undefined, member: A): void {
    member.next = before === undefined ? this.#head : before.next
    if (before === undefined) this.#head = member
    else before.next = member
    if (member.next === undefined) this.#tail = member
    this.#size++
  }
}

/** An empty list. */
export const make = <A extends Member<A>>(): ReadyQueue<A> => new List()
