/** Counts the messages of a queue: what waits by a passive declare, what is in flight by the management interface. */
import { type BrokerError, Log } from "@requeue/core/port"
import * as Effect from "effect/Effect"
import type { Management, QueueInfo } from "./management.ts"
import type { Passive } from "./passive.ts"

export interface Dependencies {
  readonly passive: Passive
  readonly management: Management | undefined
  /** Tells the type of a queue, where that was found. */
  readonly found: (queue: string) => { readonly type?: string | undefined }
}

/** Answers `otherwise` for a queue that does not exist. */
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
  /** Where the management interface does not answer, all others tell their counts as without it. The log says so once. */
  const unacknowledged = (from: Management, queue: string): Effect.Effect<number | undefined> =>
    Effect.matchEffect(from.unacknowledged(queue), {
      onSuccess: (count) => Effect.sync(() => ((isAway = false), count)),
      onFailure: (error) => {
        const line = "the management interface does not tell what is in flight"
        const told = isAway ? Effect.void : Log.warning(line, { queue, errorMessage: error.message })
        isAway = true
        return Effect.as(told, undefined)
      }
    })

  /** `listed` is what the management interface tells of the queue among all others, where somebody has asked that. */
  return (queue: string, listed?: QueueInfo) =>
    Effect.gen(function* () {
      const answer = yield* orMissing(passive(queue), undefined)
      if (answer === undefined) return { ready: 0, inFlight: 0, isFree: true, consumers: 0, isMissing: true }
      const { consumerCount, messageCount } = answer
      // A quorum queue counts whoever has a message of it as a consumer, cancelled ones and `basic.get` included.
      const isFree = consumerCount === 0 && found(queue).type === "quorum"
      const own = { ready: messageCount, isFree, consumers: consumerCount }
      if (management === undefined || isFree) return { ...own, inFlight: management && 0 }
      return { ...own, inFlight: listed?.unacknowledged ?? (yield* unacknowledged(management, queue)) }
    })
}
