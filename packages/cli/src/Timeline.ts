/** A queue of events in the order of their times; of those with the same time, the one that was planned first comes first. */
import TinyQueue from "tinyqueue"

interface Planned<Event> {
  readonly at: number
  readonly order: number
  readonly event: Event
}

/** Times are in milliseconds, from 0. */
export interface Timeline<Event> {
  /** The time of the last event that `next` answered. */
  readonly now: () => number
  /** The number of events that have been planned so far. */
  readonly planned: () => number
  /** Plans an event. */
  readonly after: (millis: number, event: Event) => void
  /** Goes on to the next event, and answers it; `undefined` when there is none. */
  readonly next: () => Event | undefined
}

/** Makes an empty timeline. */
export const make = <Event>(): Timeline<Event> => {
  const queue = new TinyQueue<Planned<Event>>([], (a, b) => a.at - b.at || a.order - b.order)
  let [now, order] = [0, 0]
  return {
    now: () => now,
    planned: () => order,
    after: (millis, event) => queue.push({ at: now + millis, order: order++, event }),
    next: () => {
      const first = queue.pop()
      now = first?.at ?? now
      return first?.event
    }
  }
}
