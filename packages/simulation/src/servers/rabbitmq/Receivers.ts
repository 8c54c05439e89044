/** The consumers of a queue, which take turns. https://www.rabbitmq.com/docs/consumer-priority */
import type { Entry } from "./Entry.ts"

/** A consumer, as its queue sees it. */
export interface Receiver {
  /** The name of its client. */
  readonly client: string
  readonly priority: number
  readonly hasRoom: () => boolean
  readonly deliver: (entry: Entry) => void
  /** The queue is gone. */
  readonly cancelled: () => void
}

/** The consumers of a queue. */
export class Receivers {
  /** The next one first, and those of a higher priority before the others. */
  #all: ReadonlyArray<Receiver> = []

  get size(): number {
    return this.#all.length
  }

  has(receiver: Receiver): boolean {
    return this.#all.includes(receiver)
  }

  add(receiver: Receiver, isSingleActive: boolean): void {
    const all = [...this.#all, receiver]
    this.#all = isSingleActive ? all : all.toSorted((one, other) => other.priority - one.priority)
  }

  remove(receiver: Receiver): void {
    this.#all = this.#all.filter((each) => each !== receiver)
  }

  /** The next consumer that has room. It goes behind the others. */
  next(isSingleActive: boolean): Receiver | undefined {
    if (isSingleActive) return this.#all.slice(0, 1).find((each) => each.hasRoom())
    const found = this.#all.find((each) => each.hasRoom())
    if (found === undefined || this.#all.length === 1) return found
    const others = this.#all.filter((each) => each !== found)
    const behind = others.findLastIndex((each) => each.priority >= found.priority) + 1
    this.#all = others.toSpliced(behind, 0, found)
    return found
  }

  /** Ends all consumers, because the queue is gone. */
  cancel(): void {
    const all = this.#all
    this.#all = []
    for (const receiver of all) receiver.cancelled()
  }
}
