/** Bodies that are being decoded by a codec that returned a promise. Each of them has a time limit. */
import * as Deadlines from "../../adapter-kit/Deadlines.ts"
import type { Timers } from "../../adapter-kit/Timers.ts"
import type { Item, Load } from "./item.ts"

/** Exactly one of these is called for a body, unless its delivery is lost meanwhile. */
interface Ends {
  readonly decoded: (body: unknown) => void
  readonly failed: (error: unknown) => void
  readonly late: () => void
}

export interface Decoding {
  readonly wait: (item: Item, body: Promise<unknown>, ends: Ends) => void
}

/** Milliseconds that a codec has. */
export const timeout = 30_000

export const make = (timers: Timers, load: Load): Decoding => {
  const deadlines = Deadlines.make(timers, timeout, true)
  return {
    wait: (item, body, { decoded, failed, late }) => {
      item.stage = "decoding"
      load.decoding++
      let isWaiting = true
      const end = (how: () => void): void => {
        if (!isWaiting) return
        isWaiting = false
        deadlines.end(deadline)
        // A lost delivery is in flight no more, and counts no more: it is delivered again.
        if (item.place === -1) return
        load.decoding--
        item.stage = "waiting"
        how()
      }
      const deadline = Deadlines.deadline(() => end(late))
      deadlines.start(deadline)
      body.then(
        (value) => end(() => decoded(value)),
        (error: unknown) => end(() => failed(error))
      )
    }
  }
}
