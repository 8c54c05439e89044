/** What is going to happen, in the order of its time; what happens at the same time, in the order in which it was planned. */
import TinyQueue from "tinyqueue"

interface Planned<What> {
  readonly at: number
  readonly order: number
  readonly what: What
}

export interface Timeline<What> {
  readonly now: () => number
  /** How much has been planned. */
  readonly planned: () => number
  readonly after: (millis: number, what: What) => void
  /** The next that happens, which it then is the time of. */
  readonly next: () => What | undefined
}

export const make = <What>(): Timeline<What> => {
  const queue = new TinyQueue<Planned<What>>([], (a, b) => a.at - b.at || a.order - b.order)
  let [now, order] = [0, 0]
  return {
    now: () => now,
    planned: () => order,
    after: (millis, what) => queue.push({ at: now + millis, order: order++, what }),
    next: () => {
      const first = queue.pop()
      now = first?.at ?? now
      return first?.what
    }
  }
}
