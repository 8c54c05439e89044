/** Counts the messages of a queue: ready ones by a passive declare, those in flight by the management interface. */
import { type BrokerError, Log } from "@requeue/core/port"
import * as Effect from "effect/Effect"
import type { Management, QueueInfo } from "./management.ts"
import type { Passive } from "./passive.ts"

export interface Dependencies {
  readonly passive: Passive
  readonly management: Management | undefined
  /** Returns the type of a queue, if it was found. */
  readonly found: (queue: string) => { readonly type?: string | undefined }
}

/** Returns `otherwise` for a missing queue. */
export const orMissing = <A, B, R>(
  effect: Effect.Effect<A, BrokerError.BrokerError, R>,
  otherwise: B
): Effect.Effect<A | B, BrokerError.BrokerError, R> =>
  Effect.catchIf(
    effect,
    (error) => error.reason === "QueueMissing",
    () => Effect.succeed(otherwise)
  )

export const make = ({ found, management, passive }: Dependencies) => {
  let isAway = false
  /** If the management interface does not respond, the other counts are as without it. This is logged once. */
  const unacknowledged = (from: Management, queue: string): Effect.Effect<number | undefined> =>
    Effect.matchEffect(from.unacknowledged(queue), {
      onSuccess: (count) => Effect.sync(() => ((isAway = false), count)),
      onFailure: (error) => {
        const line = "the management interface does not report messages in flight"
        const told = isAway ? Effect.void : Log.warning(line, { queue, errorMessage: error.message })
        isAway = true
        return Effect.as(told, undefined)
      }
    })

  /** `listed` is the queue's entry in the list of all queues, if the caller has that list. */
  return (queue: string, listed?: QueueInfo) =>
    Effect.gen(function* () {
      const answer = yield* orMissing(passive(queue), undefined)
      if (answer === undefined) return { ready: 0, inFlight: 0, isFree: true, consumers: 0, isMissing: true }
      const { consumerCount, messageCount } = answer
      // A quorum queue counts every holder of a message as a consumer, including cancelled consumers and `basic.get`.
      const isFree = consumerCount === 0 && found(queue).type === "quorum"
      const own = { ready: messageCount, isFree, consumers: consumerCount }
      if (management === undefined || isFree) return { ...own, inFlight: management && 0 }
      return { ...own, inFlight: listed?.unacknowledged ?? (yield* unacknowledged(management, queue)) }
    })
}
