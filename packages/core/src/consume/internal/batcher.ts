/**
 * Gathers messages into batches. A batch is due when it is full, or when its first message has waited as long as the
 * policy allows.
 *
 * There is one timer at most, for the batch that is being filled; it is cancelled with its batch.
 */
import * as Deadlines from "../../adapter-kit/Deadlines.ts"
import type { BatchPolicy } from "../../policy/BatchPolicy.ts"
import type { Timer, Timers } from "../../adapter-kit/Timers.ts"
import type { Item } from "./item.ts"
import * as TurnClock from "./turnClock.ts"

export interface Batcher {
  readonly push: (item: Item) => void
  /**
   * The next batch if one is due, of `limit` messages at most; a batch of `limit` messages is due at once, so that a
   * consumer that probes with one message does not wait for more.
   */
  readonly take: (limit: number) => ReadonlyArray<Item> | undefined
  /** Removes all messages that wait, and returns them in order of arrival. */
  readonly clear: () => ReadonlyArray<Item>
  /** Number of messages that wait. */
  readonly size: () => number
}

export const make = ({ maxBatchSize, maxBatchTimeout }: BatchPolicy, timers: Timers, onDue: () => void): Batcher => {
  const items: Array<Item> = []
  let timer: Timer | undefined
  const arrival = TurnClock.make(timers.now)

  /** Milliseconds until the batch is due. */
  const dueIn = (): number =>
    maxBatchTimeout === 0 ? 0 : Math.max(0, items[0]!.arrived + maxBatchTimeout - timers.now() - Deadlines.tolerance)

  const arm = (): void => {
    timers.cancel(timer)
    timer =
      items.length === 0 || items.length >= maxBatchSize || dueIn() === 0 ? undefined : timers.after(dueIn(), onDue)
  }

  const cut = (count: number): ReadonlyArray<Item> => {
    const batch = count === 1 ? [items.shift()!] : items.splice(0, count)
    arm()
    return batch
  }

  return {
    push: (item) => {
      if (maxBatchTimeout > 0) item.arrived = arrival()
      items.push(item)
      if (items.length === 1 || items.length === maxBatchSize) arm()
    },
    take: (limit) => {
      const size = Math.min(limit, maxBatchSize)
      if (items.length === 0 || size === 0) return undefined
      return items.length >= size || dueIn() === 0 ? cut(size) : undefined
    },
    clear: () => cut(items.length),
    size: () => items.length
  }
}
