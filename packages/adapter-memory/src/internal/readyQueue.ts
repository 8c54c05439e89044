/** The ready messages of a queue, first in, first out, as a linked list. A returned message regains its old position. */

/** The fields of a member. Only the list changes them. */
export interface Member<A> {
  position: number
  next: A | undefined
}

/** The position of the next member of lists that share one order. */
export interface Positions {
  next: number
}

/** The list. It iterates from head to tail. */
export interface ReadyQueue<A> extends Iterable<A> {
  readonly positions: Positions
  readonly size: () => number
  readonly append: (member: A) => void
  /** Returns a taken member to its old position: before all later ones. */
  readonly putBack: (member: A) => void
  /** Removes and returns the head; `undefined` if the list is empty. */
  readonly take: () => A | undefined
  readonly clear: () => void
}

/** A class, because a queue then costs one object and not several closures: a producer may use thousands of queues. */
class List<A extends Member<A>> implements ReadyQueue<A> {
  #head: A | undefined = undefined
  #tail: A | undefined = undefined
  /** The last returned member, while it is in the list. Members returned in order need no walk. */
  #returned: A | undefined = undefined
  #size = 0
  readonly positions: Positions

  constructor(positions: Positions) {
    this.positions = positions
  }

  size(): number {
    return this.#size
  }

  append(member: A): void {
    member.position = this.positions.next++
    this.#insertAfter(this.#tail, member)
  }

  putBack(member: A): void {
    const returned = this.#returned
    // Members that never left are later in the list, so the walk passes only returned ones.
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

export const make = <A extends Member<A>>(positions: Positions = { next: 0 }): ReadyQueue<A> => new List(positions)
