/**
 * Keeps the leases of all deliveries in flight. A process that was suspended, or whose event loop was blocked, may have lost them to
 * another consumer. So no handler begins until the broker has answered an extension.
 */
import type { Timers } from "../../runtime/Timers.ts"

export interface Leases {
  /** Whether the leases surely last. Otherwise it extends them. */
  readonly last: () => boolean
  /** Must be called when the broker has answered an extension that began at this time. */
  readonly extended: (began: number) => void
}

export interface Dependencies {
  /** The length of a lease in milliseconds. */
  readonly duration: number
  readonly timers: Pick<Timers, "after" | "now">
  readonly extend: () => void
  /** Called when handlers that had to wait for an answer may begin. */
  readonly onLast: () => void
}

/** Extends all leases three times per lease, so two extensions may fail. */
export const make = ({ duration, extend, onLast, timers }: Dependencies): Leases => {
  let until = timers.now() + duration
  let isAwaited = false
  const keep = (): void => {
    timers.after(duration / 3, () => {
      extend()
      keep()
    })
  }
  keep()
  return {
    last: () => {
      if (timers.now() < until) return true
      isAwaited = true
      extend()
      return timers.now() < until
    },
    extended: (began) => {
      until = began + duration
      if (!isAwaited) return
      isAwaited = false
      onLast()
    }
  }
}
