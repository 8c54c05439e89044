/** One timer that can be set again. */
import type { Host } from "../Host.ts"

/** A timer. */
export interface WakeUp {
  /** Runs at this time instead of the time before; `Infinity`: it does not run. */
  readonly at: (time: number) => void
}

/** Makes a timer that is not set. */
export const make = (host: Host, run: () => void): WakeUp => {
  let set: { readonly time: number; readonly cancel: () => void } | undefined
  return {
    at: (time) => {
      if (set?.time === time) return
      set?.cancel()
      set = undefined
      if (time === Infinity) return
      const wake = (): void => {
        set = undefined
        run()
      }
      set = { time, cancel: host.after(Math.max(0, time - host.now()), wake) }
    }
  }
}
