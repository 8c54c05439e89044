/**
 * The trouble of a subscription's polls, or of its settlements: SQS refuses them, or the queue is gone. An outage is logged
 * as well, and is none: the connection has a state of its own.
 */
import { type BrokerError, Trouble } from "@requeue/core/adapter-kit"
import * as Effect from "effect/Effect"
import { isTransient } from "../toBrokerError.ts"

/** The trouble of one kind of calls. */
export interface CallTrouble extends Pick<Trouble.Tracker, "current"> {
  readonly failed: (error: BrokerError.BrokerError) => void
  readonly over: () => void
}

/** Whether time alone ends it: the connection is lost, or SQS is busy for a while. */
const passes = (error: BrokerError.BrokerError): boolean => isTransient(error) || error.reason === "QueueFull"

/** No trouble, at first. `now` returns milliseconds since the epoch. */
export const make = (env: {
  readonly queue: string
  readonly now: () => number
  readonly fork: (effect: Effect.Effect<unknown>) => void
}): CallTrouble => {
  const { fork, now, queue } = env
  const tracker = Trouble.track(queue, now)
  /** The reason of the outage that was logged. */
  let outage: BrokerError.Reason | undefined
  const log = (line: Effect.Effect<void>, notes: object): void => fork(Effect.annotateLogs(line, { queue, ...notes }))

  return {
    current: tracker.current,
    failed: (error) => {
      if (!passes(error)) return fork(tracker.tell(error))
      const { message, reason } = error
      if (outage !== reason) log(Effect.logWarning("not consuming, and trying again"), { error: message })
      outage = reason
    },
    over: () => {
      if (tracker.current() !== undefined) fork(tracker.over)
      else if (outage !== undefined) log(Effect.logInfo("consuming again"), {})
      outage = undefined
    }
  }
}
