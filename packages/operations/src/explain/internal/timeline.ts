/**
 * A queue of events in the order of their times. Of events with the same time, the one that was planned first comes first.
 */
import { Heap } from "@requeue/core/port"

/** Times are in milliseconds, from 0. */
export interface Timeline<Event> {
  /** The time of the last event that `next` returned. */
  readonly now: () => number
  /** The number of events that have been planned so far. */
  readonly planned: () => number
  /** Plans an event. */
  readonly after: (millis: number, event: Event) => void
  /** Advances to the next event and returns it; `undefined` if there is none. */
  readonly next: () => Event | undefined
}

/** Makes an empty timeline. */
export const make = <Event>(): Timeline<Event> => {
  const heap = Heap.make<Event>()
  let [now, planned] = [0, 0]
  return {
    now: () => now,
    planned: () => planned,
    after: (millis, event) => {
      planned++
      heap.push(now + millis, event)
    },
    next: () => {
      now = heap.peekKey() ?? now
      return heap.pop()
    }
  }
}
