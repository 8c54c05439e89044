/** The ends of things that may all take equally long: one timer for all of them, whatever their number. */
import type { Timers } from "../Timers.ts"
import * as Bag from "./bag.ts"

export interface Deadline extends Bag.Member {
  /** Monotonic milliseconds. */
  readonly at: number
  readonly pass: () => void
}

export interface Deadlines {
  /** Milliseconds that each may take; `Infinity` for no limit. */
  readonly timeout: number
  /** `pass` is called when the time is over, unless it was ended before. */
  readonly start: (pass: () => void) => Deadline | undefined
  readonly end: (deadline: Deadline | undefined) => void
}

export const make = (timers: Timers, timeout: number): Deadlines => {
  const running = Bag.make<Deadline>()
  /** True while a timer runs, or its callback. */
  let isWatched = false

  const watch = (millis: number): void => {
    isWatched = true
    timers.after(millis, look)
  }

  const look = (): void => {
    // What the sum of two fractions may be off does not count.
    const now = timers.now() + 0.001
    for (const deadline of running) {
      if (deadline.at > now || deadline.place === -1) continue
      running.delete(deadline)
      deadline.pass()
    }
    isWatched = false
    let next = Number.POSITIVE_INFINITY
    for (const { at } of running) next = Math.min(next, at)
    if (next < Number.POSITIVE_INFINITY) watch(next - timers.now())
  }

  return {
    timeout,
    start: (pass) => {
      if (timeout === Number.POSITIVE_INFINITY) return undefined
      const deadline: Deadline = { at: timers.now() + timeout, pass, place: -1 }
      running.add(deadline)
      if (!isWatched) watch(timeout)
      return deadline
    },
    end: (deadline) => {
      if (deadline !== undefined) running.delete(deadline)
    }
  }
}
