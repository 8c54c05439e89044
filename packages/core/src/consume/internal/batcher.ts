/**
 * Fills batches. A batch is due when it is full, or when its first message has waited as long as the policy allows. A
 * message that may kill its process forms a batch alone, and goes first.
 *
 * One timer serves the batch that is being filled. A full batch does not cancel it: a new timer would cost each batch a
 * fiber and a timer of the event loop.
 */
import * as Deadlines from "../../runtime/Deadlines.ts"
import type { BatchPolicy } from "../../policy/BatchPolicy.ts"
import type { Timer, Timers } from "../../runtime/Timers.ts"
import type { Item, InFlightCounters } from "./item.ts"
import * as WaitQueue from "./waitQueue.ts"

export interface Batcher {
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
  readonly load: InFlightCounters
  /** Returns a number from 0 to below 1. */
  readonly random: () => number
  readonly onDue: () => void
}

export const make = ({ load, onDue, policy, random, timers }: Dependencies): Batcher => {
  const { maxBatchSize, maxBatchTimeout } = policy
  const items = WaitQueue.make()
  const suspects = WaitQueue.make()

  /** Milliseconds until the batch is due. */
  const dueIn = (): number =>
    maxBatchTimeout === 0
      ? 0
      : Math.max(0, items.first()!.arrived + maxBatchTimeout - timers.now() - Deadlines.tolerance)

  const arm = (): void => {
    if (items.size() === 0 || items.size() >= maxBatchSize) return
    const wait = dueIn()
    if (wait > 0) alarm.within(wait)
  }

  const alarm = makeAlarm(timers, () => {
    if (items.size() > 0 && dueIn() === 0) onDue()
    else arm()
  })

  const count = (): void => {
    load.suspects = suspects.size()
    load.buffered = items.size() + suspects.size()
  }

  const cut = (size: number): ReadonlyArray<Item> => {
    const batch = items.take(size)
    count()
    arm()
    return batch
  }

  return {
    push: (item, isSuspect) => {
      if (isSuspect) {
        suspects.push(item)
        return count()
      }
      // A message that was held back for its group keeps its first arrival.
      if (maxBatchTimeout > 0 && item.arrived === 0) item.arrived = timers.now()
      items.push(item)
      count()
      if (items.size() === 1 || items.size() === maxBatchSize) arm()
    },
    take: (limit) => {
      const size = Math.min(limit, maxBatchSize)
      if (items.size() === 0 || size === 0) return undefined
      return items.size() >= size || dueIn() === 0 ? cut(size) : undefined
    },
    takeSuspect: () => {
      // At random: in a fixed order, each crash would cost the messages after the fatal one an attempt.
      const item = suspects.all()[Math.floor(random() * suspects.size())]!
      suspects.delete(item)
      count()
      return item
    },
    clear: () => {
      const waiting = [...cut(items.size()), ...suspects.take(suspects.size())]
      alarm.cancel()
      count()
      return waiting
    },
    delete: (item) => {
      items.delete(item)
      suspects.delete(item)
      count()
      arm()
    }
  }
}

/** One timer, which wakes at the earliest requested time. It may wake without work to do. */
const makeAlarm = (timers: Timers, wake: () => void) => {
  let timer: Timer | undefined
  let wakesAt = 0
  const cancel = (): void => {
    timers.cancel(timer)
    timer = undefined
  }
  return {
    cancel,
    within: (wait: number): void => {
      const at = timers.now() + wait
      if (timer !== undefined && wakesAt <= at) return
      cancel()
      wakesAt = at
      timer = timers.after(wait, () => {
        timer = undefined
        wake()
      })
    }
  }
}
