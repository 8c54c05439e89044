/** Counts, looks into and empties queues. */
import type { Broker, BrokerError } from "@requeue/core/adapter-kit"
import * as Effect from "effect/Effect"
import * as Semaphore from "effect/Semaphore"
import * as Names from "../names.ts"
import * as Backlog from "./backlog.ts"
import * as DelayedAtMost from "./delayedAtMost.ts"
import * as DelayQueues from "./delayQueues.ts"
import * as Look from "./look.ts"
import type * as LookSession from "./lookSession.ts"
import type { Management, QueueInfo } from "./management.ts"
import * as Sift from "./sift.ts"
import * as Together from "./together.ts"

/** The broker's own. */
type Dependencies = Omit<
  LookSession.Dependencies & Sift.Dependencies & Backlog.Dependencies,
  "own" | "sleep" | "ready" | "listed"
>

/** The broker's `admin`. */
export const make = (given: Dependencies): Broker.Admin => {
  const { declarer, management, run, settings } = given
  // What it tells is some seconds old anyway: 200 queues that are asked for are one list.
  const list = Together.make(() => management?.queues ?? Effect.succeed([]), 1000)
  const env = {
    ...given,
    own: Names.own(settings),
    sleep: (millis: number) => run(Effect.sleep(millis)),
    ready: Together.make((name) => DelayQueues.ready(declarer, "counts", name)),
    listed: list("all")
  }
  /** Two looks at the same delay queue would each see a part. */
  const lock = Semaphore.makeUnsafe(1)

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

  let isAway = false
  /** Where the management interface does not answer, all others tell their counts as without it. The log says so once. */
  const unacknowledged = (from: Management, queue: string): Effect.Effect<number | undefined> =>
    Effect.matchEffect(from.unacknowledged(queue), {
      onSuccess: (count) => Effect.sync(() => ((isAway = false), count)),
      onFailure: (error) => {
        const log = Effect.logWarning("the management interface does not tell what is in flight")
        const told = isAway ? Effect.void : Effect.annotateLogs(log, { queue, error: error.message })
        isAway = true
        return Effect.as(told, undefined)
      }
    })

  /** `listed` is what the management interface tells of the queue among all others, where somebody has asked that. */
  const counts = (queue: string, listed?: QueueInfo) =>
    Effect.gen(function* () {
      const answer = yield* orMissing(
        declarer.onChannel("counts", queue, (channel) => channel.checkQueue(queue)),
        undefined
      )
      if (answer === undefined) return { ready: 0, inFlight: 0, isFree: true, consumers: 0, isMissing: true }
      const { consumerCount, messageCount } = answer
      // A quorum queue counts whoever has a message of it as a consumer, cancelled ones and `basic.get` included.
      const isFree = consumerCount === 0 && env.found(queue).type === "quorum"
      const own = { ready: messageCount, isFree, consumers: consumerCount }
      if (management === undefined || isFree) return { ...own, inFlight: management && 0 }
      return { ...own, inFlight: listed?.unacknowledged ?? (yield* unacknowledged(management, queue)) }
    })

  return {
    counts: (queue) =>
      Effect.map(counts(queue), ({ consumers, inFlight, isMissing = false, ready }) => ({
        ready,
        inFlight,
        delayed: undefined,
        isRead: consumers > 0,
        ...(isMissing ? { isMissing } : {})
      })),
    backlog: (request) =>
      Effect.gen(function* () {
        const all = yield* Effect.orElseSucceed(env.listed, () => [])
        const listed = all.find(({ name }) => name === request.queue)
        const { consumers, inFlight, isFree, ready } = yield* counts(request.queue, listed)
        return yield* Backlog.of(env, request, { ready, consumers, inFlight: isFree ? 0 : inFlight })
      }),
    ...(settings.topology === "native"
      ? {}
      : { sift: (request, removes) => lock.withPermits(1)(Sift.sift(env, request, removes)) }),
    peek: (queue, limit) => orMissing(Look.peek(queue, limit, env), []),
    look: (queue, limit) => orMissing(Look.open(queue, limit, env), { next: Effect.succeed([]) }),
    ...(management === undefined
      ? {}
      : {
          names: Effect.map(management.queues, (queues) => queues.map(({ name }) => name)),
          delayedAtMost: (queue) => DelayedAtMost.of({ ...env, management }, queue)
        }),
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
