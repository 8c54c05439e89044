/** Troubles: why a reachable broker does not deliver, such as no permission, no queue, a pause, or failing calls. */
import * as Effect from "effect/Effect"
import type { BrokerError } from "./BrokerError.ts"
import * as Log from "./Log.ts"

/** Why a reachable broker does not deliver the messages of a subscription. */
export interface Trouble {
  /** When the trouble began, in milliseconds since the epoch. */
  readonly since: number
  /** The last error that explains it. */
  readonly error: BrokerError
}

/** Tracks and logs the trouble of one subscription. */
export interface Tracker {
  readonly current: () => Trouble | undefined
  /** Records that the queue is not consumed. Logs the error if its reason differs from the last one. */
  readonly tell: (error: BrokerError) => Effect.Effect<void>
  /** Records that the queue is consumed. Logs that, if the queue was not consumed before. */
  readonly over: Effect.Effect<void>
}

/**
 * Makes a tracker without trouble. `now` returns milliseconds since the epoch.
 *
 * When to use: in an adapter: the tracker's `current` is its `Subscription.trouble`.
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
