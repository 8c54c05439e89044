/** Long polls under a credit: one at a time, and more while they return full. None is ever cut off. */
import type { Machine } from "../world/Machine.ts"

/** The polls of one queue. */
export interface Polls {
  /** Sets the maximum number of deliveries in flight. */
  readonly credit: (limit: number) => void
  /** Frees a part of the deliveries in flight. */
  readonly refresh: () => void
  /** Starts no further polls, and calls back when those in flight have ended. */
  readonly close: (done: () => void) => void
}

interface Options {
  readonly machine: Machine
  /** The number of deliveries in flight. */
  readonly inFlight: () => number
  /** Polls for up to `count` messages, and calls back with the number that arrived, or `undefined` if it failed. */
  readonly poll: (count: number, done: (came: number | undefined) => void) => void
}

/** Polls at a time. */
const most = 3

/** Messages of one poll. */
const size = 10

/** Milliseconds before the poll that follows a failure; they double with each failure in a row, up to the maximum. */
const pauses = { first: 250, longest: 10_000 }

/** Polls nothing until there is credit. */
export const make = ({ inFlight, machine, poll }: Options): Polls => {
  let limit = 0
  let asked = 0
  let polls = 0
  let allowed = 1
  let failures = 0
  let isPausing = false
  let onClosed: (() => void) | undefined

  const free = (): number => limit - inFlight() - asked

  const start = (): void => {
    const count = Math.min(size, free())
    polls++
    asked += count
    poll(count, (came) => {
      polls--
      asked -= count
      if (came === undefined) fail()
      else {
        failures = 0
        allowed = came * 2 >= count ? Math.min(most, allowed + 1) : 1
      }
      pump()
    })
  }

  const fail = (): void => {
    allowed = 1
    if (isPausing) return
    isPausing = true
    machine.after(Math.min(pauses.first * 2 ** failures++, pauses.longest), () => {
      isPausing = false
      pump()
    })
  }

  const pump = (): void => {
    if (onClosed !== undefined) return polls === 0 ? onClosed() : undefined
    while (!isPausing && polls < allowed && free() > 0) start()
  }

  return {
    credit: (wanted) => {
      limit = wanted
      pump()
    },
    refresh: pump,
    close: (done) => {
      onClosed = done
      pump()
    }
  }
}
