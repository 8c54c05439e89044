/** Messages whose codec returned a promise. Each has a time limit. */
import * as Deadlines from "../../runtime/Deadlines.ts"
import type { Timers } from "../../runtime/Timers.ts"
import type { Item, InFlightCounters } from "./item.ts"

/** Exactly one of these is called for a body, unless its delivery is lost or returned first. */
interface Ends {
  readonly decoded: (body: unknown) => void
  readonly failed: (error: unknown) => void
  readonly late: () => void
}

export interface Decoding {
  readonly wait: (item: Item, body: Promise<unknown>, ends: Ends) => void
  /** Stops waiting, and returns the messages that are still being decoded, in order of arrival. */
  readonly clear: () => ReadonlyArray<Item>
}

/** Time limit of a codec, in milliseconds. */
export const timeout = 30_000

export const make = (timers: Timers, load: InFlightCounters): Decoding => {
  const deadlines = Deadlines.make(timers, timeout, true)
  /** By message, the function that ends the wait for its codec. */
  const waiting = new Map<Item, () => boolean>()
  return {
    wait: (item, body, { decoded, failed, late }) => {
      item.stage = "decoding"
      load.decoding++
      /** Ends the wait. Returns whether the message proceeds: the wait had not ended, and the delivery is not lost. */
      const leave = (): boolean => {
        if (!waiting.delete(item)) return false
        deadlines.end(deadline)
        // The broker redelivers a lost delivery, which is no longer counted here.
        if (item.place === -1) return false
        load.decoding--
        item.stage = "waiting"
        return true
      }
      const end = (how: () => void): void => {
        if (leave()) how()
      }
      waiting.set(item, leave)
      const deadline = Deadlines.deadline(() => end(late))
      deadlines.start(deadline)
      body.then(
        (value) => end(() => decoded(value)),
        (error: unknown) => end(() => failed(error))
      )
    },
    clear: () => [...waiting].flatMap(([item, leave]) => (leave() ? [item] : []))
  }
}
