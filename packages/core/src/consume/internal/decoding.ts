/** Bodies that are being decoded by a codec that returned a promise. Each of them has a time limit. */
import * as Deadlines from "../../adapter-kit/Deadlines.ts"
import type { Timers } from "../../adapter-kit/Timers.ts"
import type { Delivery } from "../../message/Delivery.ts"
import type { Item } from "./item.ts"

/** Exactly one of these is called for a body, unless its delivery went with its connection. */
interface Ends {
  readonly decoded: (body: unknown) => void
  readonly failed: (error: unknown) => void
  readonly late: () => void
}

export interface Decoding {
  readonly wait: (item: Item, body: Promise<unknown>, ends: Ends) => void
  /** Drops bodies whose delivery went with its connection: it is delivered again. */
  readonly onReconnect: (isGone: (delivery: Delivery) => boolean) => void
  /** Number of bodies that are being decoded. */
  readonly size: () => number
}

/** Milliseconds that a codec has. */
export const timeout = 30_000

/** `forget` is called for a delivery that is gone, once its codec has ended. */
export const make = (timers: Timers, forget: (item: Item) => void): Decoding => {
  const deadlines = Deadlines.make(timers, timeout, true)
  const waiting = new Set<Item>()
  /** Those of them that a lost connection delivered. */
  const lost = new Set<Item>()

  return {
    wait: (item, body, { decoded, failed, late }) => {
      waiting.add(item)
      const end = (how: () => void): void => {
        if (!waiting.delete(item)) return
        deadlines.end(deadline)
        if (lost.delete(item)) forget(item)
        else how()
      }
      const deadline = Deadlines.deadline(() => end(late))
      deadlines.start(deadline)
      body.then(
        (value) => end(() => decoded(value)),
        (error: unknown) => end(() => failed(error))
      )
    },
    onReconnect: (isGone) => {
      for (const item of waiting) if (isGone(item.delivery)) lost.add(item)
    },
    size: () => waiting.size
  }
}
