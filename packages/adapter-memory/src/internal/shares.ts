/**
 * The ready messages of a queue. The messages of each `fairBy` are a share, and so are those without one. Shares are taken from in turn;
 * within a share, the first message leaves first.
 */
import * as ReadyQueue from "./readyQueue.ts"

/** A ready message. */
export interface Member<A> extends ReadyQueue.Member<A> {
  readonly fairBy: string | undefined
}

/** Whether a message of a share may be taken. */
export type MayTake = (fairBy: string) => boolean

/** The ready messages. They iterate from the one that came first to the last one. */
export interface Shares<A> extends ReadyQueue.ReadyQueue<A> {
  /** Removes and returns the next message. Default of `mayTake`: any share. */
  readonly take: (mayTake?: MayTake) => A | undefined
}

/** A class, for the same reason as the list. A queue without `fairBy` has no shares but one. */
class Turns<A extends Member<A>> implements Shares<A> {
  readonly #positions: ReadyQueue.Positions = { next: 0 }
  readonly #unshared = ReadyQueue.make<A>(this.#positions)
  /** Those with messages, next one first; `undefined` as long as no message had a `fairBy`. */
  #shares: Map<string | undefined, ReadyQueue.ReadyQueue<A>> | undefined = undefined

  size(): number {
    if (this.#shares === undefined) return this.#unshared.size()
    let size = 0
    for (const share of this.#shares.values()) size += share.size()
    return size
  }

  append(member: A): void {
    this.#shareOf(member).append(member)
  }

  putBack(member: A): void {
    this.#shareOf(member).putBack(member)
  }

  take(mayTake?: MayTake): A | undefined {
    if (this.#shares === undefined) return this.#unshared.take()
    for (const [fairBy, share] of this.#shares) {
      if (fairBy !== undefined && mayTake?.(fairBy) === false) continue
      const member = share.take()
      this.#shares.delete(fairBy)
      if (share.size() > 0) this.#shares.set(fairBy, share)
      if (member !== undefined) return member
    }
    return undefined
  }

  clear(): void {
    this.#unshared.clear()
    this.#shares = undefined
  }

  *[Symbol.iterator](): Generator<A> {
    if (this.#shares === undefined) return yield* this.#unshared
    const all = [...this.#shares.values()].flatMap((share) => [...share])
    yield* all.toSorted((a, b) => a.position - b.position)
  }

  #shareOf({ fairBy }: A): ReadyQueue.ReadyQueue<A> {
    if (fairBy === undefined && this.#shares === undefined) return this.#unshared
    this.#shares ??= new Map([[undefined, this.#unshared]])
    const known = this.#shares.get(fairBy)
    if (known !== undefined) return known
    const share = fairBy === undefined ? this.#unshared : ReadyQueue.make<A>(this.#positions)
    this.#shares.set(fairBy, share)
    return share
  }
}

export const make = <A extends Member<A>>(): Shares<A> => new Turns()
