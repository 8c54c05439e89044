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
type MayTake = (fairBy: string) => boolean

/** The ready messages; those of a queue without `fairBy` are one list. They iterate from the one that came first to the last one. */
export interface Shares<A> extends ReadyQueue.ReadyQueue<A> {
  /** Removes and returns the next message. Default of `mayTake`: any share. */
  readonly take: (mayTake?: MayTake) => A | undefined
}

class Turns<A extends Member<A>> implements Shares<A> {
  readonly positions: ReadyQueue.Positions
  readonly #unshared: ReadyQueue.ReadyQueue<A>
  /** Those with messages, next one first. */
  readonly #shares = new Map<string | undefined, ReadyQueue.ReadyQueue<A>>()

  constructor(unshared: ReadyQueue.ReadyQueue<A>) {
    this.positions = unshared.positions
    this.#unshared = unshared
    this.#shares.set(undefined, unshared)
  }

  size(): number {
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
    this.#shares.clear()
  }

  *[Symbol.iterator](): Generator<A> {
    const all = [...this.#shares.values()].flatMap((share) => [...share])
    yield* all.toSorted((a, b) => a.position - b.position)
  }

  #shareOf({ fairBy }: A): ReadyQueue.ReadyQueue<A> {
    const known = this.#shares.get(fairBy)
    if (known !== undefined) return known
    const share = fairBy === undefined ? this.#unshared : ReadyQueue.make<A>(this.positions)
    this.#shares.set(fairBy, share)
    return share
  }
}

/** Returns the ready messages of a queue that gets its first message with `fairBy`. */
export const over = <A extends Member<A>>(ready: Shares<A>): Shares<A> =>
  ready instanceof Turns ? ready : new Turns(ready)
