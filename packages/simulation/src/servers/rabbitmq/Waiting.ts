/** The messages of a queue that wait: ready ones, returned ones, which go first, and those that the queue delays. */
import type { Entry } from "./Entry.ts"

/** The waiting messages of a queue. */
export class Waiting {
  /** The priority of a message in this queue. */
  readonly #priorityOf: (entry: Entry) => number
  #ready: Array<Entry> = []
  readonly #returned: Array<Entry> = []
  readonly #delayed = new Map<Entry, number>()

  constructor(priorityOf: (entry: Entry) => number) {
    this.#priorityOf = priorityOf
  }

  /** The number of messages that are ready. */
  get size(): number {
    return this.#ready.length + this.#returned.length
  }

  /** The times at which delayed messages are due. */
  get dueTimes(): ReadonlyArray<number> {
    return [...this.#delayed.values()]
  }

  /** The messages that are ready, in the order of their delivery. */
  get ready(): ReadonlyArray<Entry> {
    return [...this.#returned, ...this.#ready]
  }

  get bytes(): number {
    return this.ready.reduce((sum, { message }) => sum + message.content.length, 0)
  }

  /** All messages, delayed ones included. */
  get all(): ReadonlyArray<Entry> {
    return [...this.ready, ...this.#delayed.keys()]
  }

  get head(): Entry | undefined {
    return this.#returned[0] ?? this.#ready[0]
  }

  shift(): Entry | undefined {
    return this.#returned.shift() ?? this.#ready.shift()
  }

  /** Inserts a message at its place: after those of a higher priority, and after older ones. */
  insert(entry: Entry): void {
    const priority = this.#priorityOf(entry)
    let at = this.#ready.length
    for (; at > 0; at--) {
      const before = this.#ready[at - 1]!
      const other = this.#priorityOf(before)
      if (other > priority || (other === priority && before.place < entry.place)) break
    }
    this.#ready.splice(at, 0, entry)
  }

  /** Adds a returned message, which goes before all that were not returned. */
  return(entry: Entry): void {
    this.#returned.push(entry)
  }

  delay(entry: Entry, until: number): void {
    this.#delayed.set(entry, until)
  }

  /** Makes delayed messages ready that are due. */
  takeDue(now: number): void {
    const due = [...this.#delayed].filter(([, at]) => at <= now).toSorted(([, one], [, other]) => one - other)
    for (const [entry] of due) {
      this.#delayed.delete(entry)
      this.#returned.push(entry)
    }
  }

  /** Removes the messages that are ready. */
  removeReady(): ReadonlyArray<Entry> {
    return [...this.#returned.splice(0), ...this.#ready.splice(0)]
  }

  /** Removes and returns the messages that were never delivered, except these. */
  keepOnly(isKept: (entry: Entry) => boolean): ReadonlyArray<Entry> {
    const removed = this.#ready.filter((entry) => !isKept(entry))
    this.#ready = this.#ready.filter(isKept)
    return removed
  }
}
