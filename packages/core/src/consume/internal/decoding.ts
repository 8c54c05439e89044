/** Bodies that are being decoded by a codec that returned a promise. Each of them has a time limit. */
import * as Deadlines from "../../runtime/Deadlines.ts"
import type { Timers } from "../../runtime/Timers.ts"
import type { Item, InFlightCounters } from "./item.ts"

/** Exactly one of these is called for a body, unless its delivery is lost or given back meanwhile. */
interface Ends {
  readonly decoded: (body: unknown) => void
  readonly failed: (error: unknown) => void
  readonly late: () => void
}

export interface Decoding {
  readonly wait: (item: Item, body: Promise<unknown>, ends: Ends) => void
  /** Waits for no body any more, and answers the messages that are in flight without one, in order of arrival. */
  readonly clear: () => ReadonlyArray<Item>
}

/** Milliseconds that a codec has. */
export const timeout = 30_000

export const make = (timers: Timers, load: InFlightCounters): Decoding => {
  const deadlines = Deadlines.make(timers, timeout, true)
  /** Those whose codec is at work, and what ends the wait for it. */
  const waiting = new Map<Item, () => boolean>()
  return {
    wait: (item, body, { decoded, failed, late }) => {
      item.stage = "decoding"
      load.decoding++
      /** Whether the delivery is to go on: its wait has not ended before, and it is not lost. */
      const leave = (): boolean => {
        if (!waiting.delete(item)) return false
        deadlines.end(deadline)
        // A lost delivery is in flight no more, and counts no more: it is delivered again.
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
