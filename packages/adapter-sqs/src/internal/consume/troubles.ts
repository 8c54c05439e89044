/**
 * The trouble of a subscription's polls or settlements: SQS refuses them, the queue is missing, or calls have failed
 * for longer than a moment (5xx, throttling, no answer).
 */
import { type BrokerError, Trouble } from "@requeue/core/port"
import type * as Effect from "effect/Effect"
import { isTransient } from "../toBrokerError.ts"

/** The trouble of one kind of call. */
export interface CallTrouble extends Pick<Trouble.Tracker, "current"> {
  readonly failed: (error: BrokerError.BrokerError) => void
  readonly over: () => void
}

/** Whether the error may pass with time: the connection is lost, or SQS is busy. */
const passes = (error: BrokerError.BrokerError): boolean => isTransient(error) || error.reason === "QueueFull"

/** Milliseconds after which consecutive failures are a trouble: shorter ones may be a single incident. */
const moment = 200

/** Starts without trouble. `now` returns milliseconds since the epoch. */
export const make = (env: {
  readonly queue: string
  readonly now: () => number
  readonly fork: (effect: Effect.Effect<unknown>) => void
}): CallTrouble => {
  const { fork, now, queue } = env
  const tracker = Trouble.track(queue, now)
  /** Time of the first consecutive failure. */
  let first: number | undefined

  return {
    current: tracker.current,
    failed: (error) => {
      first ??= now()
      if (passes(error) && now() - first < moment) return
      fork(tracker.tell(error))
    },
    over: () => {
      first = undefined
      if (tracker.current() !== undefined) fork(tracker.over)
    }
  }
}
