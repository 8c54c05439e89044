/** Troubles: why a reachable broker does not deliver, such as no permission, no queue, a pause, or failing calls. */
import * as Effect from "effect/Effect"
import type { BrokerError } from "./BrokerError.ts"
import * as Log from "./Log.ts"

/** The trouble of a subscription. */
export interface Trouble {
  /** When it began, in milliseconds since the epoch. */
  readonly since: number
  /** The last reason. */
  readonly error: BrokerError
}

/** Tracks and logs the trouble of one subscription. */
export interface Tracker {
  readonly current: () => Trouble | undefined
  /** The queue is not consumed. Logs a reason that differs from the last. */
  readonly tell: (error: BrokerError) => Effect.Effect<void>
  /** The queue is consumed. Logs that, if it was not. */
  readonly over: Effect.Effect<void>
}

/**
 * Starts without trouble. `now` returns milliseconds since the epoch.
 *
 * When to use: in an adapter, whose `Subscription.trouble` is then `current`.
 */
export const track = (queue: string, now: () => number): Tracker => {
  let trouble: Trouble | undefined
  return {
    current: () => trouble,
    tell: (error) =>
      Effect.suspend(() => {
        const before = trouble
        trouble = { since: before?.since ?? now(), error }
        return before?.error.reason === error.reason
          ? Effect.void
          : Log.warning("not consuming", { queue, errorMessage: error.message })
      }),
    over: Effect.suspend(() => {
      if (trouble === undefined) return Effect.void
      trouble = undefined
      return Log.info("consuming again", { queue })
    })
  }
}
