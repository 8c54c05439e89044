/**
 * Fills batches. A batch is due when it is full, or when its first message has waited as long as the policy allows. A
 * message that may kill its process forms a batch alone, and goes first.
 *
 * One timer serves the batch that is being filled. A full batch does not cancel it: a new timer would cost each batch a
 * fiber and a timer of the event loop.
 */
import * as Deadlines from "../../runtime/Deadlines.ts"
import type { BatchPolicy } from "../../policy/BatchPolicy.ts"
import { Alarm } from "../../runtime/Alarm.ts"
import * as ShortList from "../../runtime/ShortList.ts"
import type { Timers } from "../../runtime/Timers.ts"
import type { Item } from "./item.ts"

export interface Batcher {
  /** Number of waiting messages, suspects included. */
  readonly size: () => number
  /** Number of waiting messages that must run alone. */
  readonly suspects: () => number
  readonly push: (item: Item, isSuspect: boolean) => void
  /**
   * Returns the next batch if one is due, with at most `limit` messages. A batch of `limit` messages is due at once, so a
   * consumer that probes with one message does not wait for more.
   */
  readonly take: (limit: number) => ReadonlyArray<Item> | undefined
  /** Returns one of the messages that must run alone; there must be one. */
  readonly takeSuspect: () => Item
  /** Removes all waiting messages, and returns them in order of arrival. */
  readonly clear: () => ReadonlyArray<Item>
  /** Removes one waiting message. */
  readonly delete: (item: Item) => void
}

export interface Dependencies {
  readonly policy: BatchPolicy
  readonly timers: Timers
  /** Returns a number from 0 to below 1. */
  readonly random: () => number
  readonly onDue: () => void
}

export const make = ({ onDue, policy, random, timers }: Dependencies): Batcher => {
  const { maxBatchSize, maxBatchTimeout } = policy
  const items = new WaitQueue()
  const suspects = new WaitQueue()

  /** Milliseconds until the batch is due. */
  const dueIn = (): number =>
    maxBatchTimeout === 0
      ? 0
      : Math.max(0, items.first()!.arrived + maxBatchTimeout - timers.now() - Deadlines.tolerance)

  const arm = (): void => {
    if (items.size === 0 || items.size >= maxBatchSize) return
    const wait = dueIn()
    if (wait > 0) alarm.within(wait)
  }

  const alarm = new Alarm(timers, () => {
    if (items.size > 0 && dueIn() === 0) onDue()
    else arm()
  })

  const cut = (size: number): ReadonlyArray<Item> => {
    const batch = items.take(size)
    arm()
    return batch
  }

  return {
    size: () => items.size + suspects.size,
    suspects: () => suspects.size,
    push: (item, isSuspect) => {
      if (isSuspect) return suspects.push(item)
      // A message that was held back for its group keeps its first arrival.
      if (maxBatchTimeout > 0 && item.arrived === 0) item.arrived = timers.now()
      items.push(item)
      if (items.size === 1 || items.size === maxBatchSize) arm()
    },
    take: (limit) => {
      const size = Math.min(limit, maxBatchSize)
      if (items.size === 0 || size === 0) return undefined
      return items.size >= size || dueIn() === 0 ? cut(size) : undefined
    },
    takeSuspect: () => {
      // At random: in a fixed order, each crash would cost the messages after the fatal one an attempt.
      const item = suspects.all()[Math.floor(random() * suspects.size)]!
      suspects.delete(item)
      return item
    },
    clear: () => {
      const waiting = [...cut(items.size), ...suspects.take(suspects.size)]
      alarm.cancel()
      return waiting
    },
    delete: (item) => {
      items.delete(item)
      suspects.delete(item)
      arm()
    }
  }
}

/** A queue of at most this many places keeps its gaps. */
const spare = 64

/**
 * A queue of messages. Removing any message takes constant time, because a lost connection removes thousands. A removed
 * message leaves a gap.
 */
export class WaitQueue {
  size = 0
  #places: Array<Item | undefined> = []
  /** The index of the first message. */
  #front = 0

  /** Returns all messages, in order of arrival. */
  all(): ReadonlyArray<Item> {
    return this.#places.filter((item) => item !== undefined)
  }

  first(): Item | undefined {
    return this.#places[this.#front]
  }

  /** Adds a message that is in no queue. */
  push(item: Item): void {
    item.number = this.#places.push(item) - 1
    this.size++
  }

  /** Removes a message, if it is in this queue. */
  delete(item: Item): void {
    if (this.#places[item.number] !== item) return
    this.#leave(item.number)
    this.#tidy()
  }

  /** Removes and returns the first `count` messages, or all if there are fewer. */
  take(count: number): ReadonlyArray<Item> {
    const first = this.first()
    // Fast path: most consumers take one message at a time.
    if (count === 1 && first !== undefined) {
      this.delete(first)
      return ShortList.of(first)
    }
    const taken = ShortList.of<Item>()
    for (let index = this.#front; index < this.#places.length && taken.length < count; index++) {
      const item = this.#places[index]
      if (item === undefined) continue
      this.#leave(index)
      taken.push(item)
    }
    this.#tidy()
    return taken
  }

  #leave(index: number): void {
    this.#places[index] = undefined
    this.size--
  }

  /** Closes the gaps when they outnumber the messages, so each gap costs one move at most. */
  #tidy(): void {
    const places = this.#places
    while (this.#front < places.length && places[this.#front] === undefined) this.#front++
    if (places.length <= spare || places.length <= 2 * this.size) return
    const left = places.filter((item) => item !== undefined)
    for (const [index, item] of left.entries()) item.number = index
    this.#places = left
    this.#front = 0
  }
}
