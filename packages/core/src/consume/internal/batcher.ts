/**
 * Gathers what arrives into batches: full, or as old as the policy lets the first message grow.
 *
 * One timer at most, for the batch being filled; it dies with its batch.
 */
import type { BatchPolicy } from "../../policy/BatchPolicy.ts"
import type { Timers } from "../../adapter-kit/Timers.ts"
import type { Item } from "./item.ts"
import * as Turn from "./turnClock.ts"

export interface Batcher {
  readonly push: (item: Item) => void
  /**
   * The next batch if one is due, of `limit` messages at most; a batch of `limit` messages is due at once, so that a
   * consumer that probes with one message does not wait for more.
   */
  readonly take: (limit: number) => ReadonlyArray<Item> | undefined
  /** All that waits, in order of arrival. */
  readonly clear: () => ReadonlyArray<Item>
  readonly size: () => number
}

export const make = ({ maxBatchSize, maxBatchTimeout }: BatchPolicy, timers: Timers, onDue: () => void): Batcher => {
  const items: Array<Item> = []
  let timer: ReturnType<Timers["after"]> | undefined
  const arrival = Turn.clock(timers.now)

  /** Milliseconds; what the sum of two fractions may be off does not count. */
  const dueIn = (): number =>
    maxBatchTimeout === 0 ? 0 : Math.max(0, items[0]!.arrived + maxBatchTimeout - timers.now() - 0.001)

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
