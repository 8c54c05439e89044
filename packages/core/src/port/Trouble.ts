/**
 * Troubles of subscriptions: a broker that can be reached does not give the messages of a queue, because a permission is
 * missing, because the queue is gone and may not be made, because somebody has paused it there, or because it fails at
 * every call.
 */
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

/** Keeps the trouble of one subscription, and logs it. */
export interface Tracker {
  readonly current: () => Trouble | undefined
  /** The queue is not consumed. A reason that is another one than the last is logged. */
  readonly tell: (error: BrokerError) => Effect.Effect<void>
  /** The queue is consumed, which is logged where it was not. */
  readonly over: Effect.Effect<void>
}

/**
 * No trouble, at first. `now` returns milliseconds since the epoch.
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
