/** Counts, looks into and empties queues. */
import type { Broker, BrokerError } from "@requeue/core/adapter-kit"
import * as Effect from "effect/Effect"
import type { Declarer } from "../declare/declare.ts"
import * as Look from "./look.ts"
import type { Management } from "./management.ts"

/** The broker's `admin`. */
export const make = (
  env: Look.Dependencies & {
    readonly declarer: Declarer
    readonly management: Management | undefined
  }
): Broker.Admin => {
  const { declarer, management } = env

  /** Answers `otherwise` for a queue that does not exist. */
  const orMissing = <A, B, R>(
    effect: Effect.Effect<A, BrokerError.BrokerError, R>,
    otherwise: B
  ): Effect.Effect<A | B, BrokerError.BrokerError, R> =>
    Effect.catchIf(
      effect,
      (error) => error.reason === "QueueMissing",
      () => Effect.succeed(otherwise)
    )

  return {
    counts: (queue) =>
      Effect.gen(function* () {
        const answer = yield* orMissing(
          declarer.onChannel("counts", queue, (channel) => channel.checkQueue(queue)),
          undefined
        )
        if (answer === undefined) return { ready: 0, inFlight: 0, delayed: undefined, isRead: false, isMissing: true }
        const { consumerCount, messageCount } = answer
        const isRead = consumerCount > 0
        // A quorum queue counts whoever has a message of it as a consumer, cancelled ones and `basic.get` included.
        const isFree = !isRead && env.found(queue).type === "quorum"
        const inFlight = management === undefined ? undefined : isFree ? 0 : yield* management.unacknowledged(queue)
        return { ready: messageCount, inFlight, delayed: undefined, isRead }
      }),
    peek: (queue, limit) => orMissing(Look.peek(queue, limit, env), []),
    look: (queue, limit) => orMissing(Look.open(queue, limit, env), { next: Effect.succeed([]) }),
    ...(management === undefined
      ? {}
      : { names: Effect.map(management.queues, (queues) => queues.map(({ name }) => name)) }),
    purge: (queue) =>
      orMissing(
        Effect.map(
          declarer.onChannel("purge", queue, (channel) => channel.purgeQueue(queue)),
          ({ messageCount }) => messageCount
        ),
        0
      )
  }
}
