/**
 * The trouble of a subscription's polls, or of its settlements: SQS refuses them, the queue is gone, or calls have failed for
 * longer than a moment, whether SQS answers 5xx, throttles, or gives no answer.
 */
import { type BrokerError, Trouble } from "@requeue/core/port"
import type * as Effect from "effect/Effect"
import { isTransient } from "../toBrokerError.ts"

/** The trouble of one kind of calls. */
export interface CallTrouble extends Pick<Trouble.Tracker, "current"> {
  readonly failed: (error: BrokerError.BrokerError) => void
  readonly over: () => void
}

/** Whether time alone may end it: the connection is lost, or SQS is busy for a while. */
const passes = (error: BrokerError.BrokerError): boolean => isTransient(error) || error.reason === "QueueFull"

/** Milliseconds after which such failures in a row are no longer those of one moment, in which all calls fail. */
const moment = 200

/** No trouble, at first. `now` returns milliseconds since the epoch. */
export const make = (env: {
  readonly queue: string
  readonly now: () => number
  readonly fork: (effect: Effect.Effect<unknown>) => void
}): CallTrouble => {
  const { fork, now, queue } = env
  const tracker = Trouble.track(queue, now)
  /** When the first failure of those in a row came. */
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
