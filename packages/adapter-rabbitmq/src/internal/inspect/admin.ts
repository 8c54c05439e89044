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
  const orMissing = <A>(
    effect: Effect.Effect<A, BrokerError.BrokerError>,
    otherwise: A
  ): Effect.Effect<A, BrokerError.BrokerError> =>
    Effect.catchIf(
      effect,
      (error) => error.reason === "QueueMissing",
      () => Effect.succeed(otherwise)
    )

  return {
    counts: (queue) =>
      Effect.gen(function* () {
        const { consumerCount, messageCount } = yield* orMissing(
          declarer.onChannel("counts", queue, (channel) => channel.checkQueue(queue)),
          { messageCount: 0, queue, consumerCount: 0 }
        )
        const isRead = consumerCount > 0
        // A quorum queue counts whoever has a message of it as a consumer, cancelled ones and `basic.get` included.
        const isFree = !isRead && env.found(queue).type === "quorum"
        const inFlight = management === undefined ? undefined : isFree ? 0 : yield* management.unacknowledged(queue)
        return { ready: messageCount, inFlight, delayed: undefined, isRead }
      }),
    peek: (queue, limit) => orMissing(Look.peek(queue, limit, env), []),
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
