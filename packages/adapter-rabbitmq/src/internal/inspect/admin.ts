/** Counts, browses and empties queues. */
import { type Broker, BrokerError } from "@requeue/core/port"
import * as Effect from "effect/Effect"
import * as Semaphore from "effect/Semaphore"
import * as NameRules from "../nameRules.ts"
import * as Names from "../names.ts"
import * as Backlog from "./backlog.ts"
import * as BrowseDelayed from "./browseDelayed.ts"
import * as BrowseReady from "./browseReady.ts"
import * as Counting from "./counting.ts"
import * as DelayedAtMost from "./delayedAtMost.ts"
import * as DelayQueues from "./delayQueues.ts"
import * as Passive from "./passive.ts"
import * as Together from "./coalesce.ts"

/** The broker's own. */
type Dependencies = Omit<
  BrowseReady.Dependencies & BrowseDelayed.Dependencies & Passive.Dependencies,
  "sleep" | "ready" | "readyInShared" | "listed" | "passive" | "lock"
>

/** Returns `otherwise` for a missing queue, and does not ask about a name that no queue can have. */
const orMissing = <A, B, R>(
  queue: string,
  effect: Effect.Effect<A, BrokerError.BrokerError, R>,
  otherwise: B
): Effect.Effect<A | B, BrokerError.BrokerError, R> =>
  NameRules.isQueue(queue) ? Counting.orMissing(effect, otherwise) : Effect.succeed(otherwise)

/** The error for delayed messages that the queue itself keeps. */
const hidden = (queue: string): BrokerError.BrokerError =>
  new BrokerError.BrokerError({
    broker: "rabbitmq",
    operation: "browse",
    queue,
    reason: "Unsupported",
    detail: 'the queue itself delays its retries (topology "native"), and RabbitMQ does not show them',
    remedy: "Wait until the messages are due, or choose another topology"
  })

/** The broker's `admin`. */
export const make = (given: Dependencies): Broker.Admin => {
  const { declarer, management, run, settings } = given
  // The counts are some seconds old anyway, so 200 queues are read as one list.
  const list = Together.make(() => management?.queues ?? Effect.succeed([]), 1000)
  const passive = Passive.make(given)
  const ready = Together.make((name) => DelayQueues.ready(passive, name))
  const env = {
    ...given,
    passive,
    sleep: (millis: number) => run(Effect.sleep(millis)),
    ready,
    readyInShared: Backlog.inShared({ ready }),
    listed: list("all"),
    lock: Semaphore.makeUnsafe(1)
  }

  const counts = Counting.make(env)

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
        const { consumers, inFlight, isFree, isMissing = false, ready } = yield* counts(request.queue, listed)
        const told = yield* Backlog.of(env, request, { ready, consumers, inFlight: isFree ? 0 : inFlight })
        return isMissing ? { ...told, isMissing } : told
      }),
    browse: (options) => {
      const { from, queue } = options
      if (from === "ready") return BrowseReady.open(options, env)
      return settings.topology === "native" ? Effect.fail(hidden(queue)) : BrowseDelayed.open(env, options)
    },
    ...(management === undefined
      ? {}
      : {
          names: Effect.map(management.queues, (queues) =>
            queues.map(({ name }) => name).filter((name) => !name.startsWith(Names.own(settings)))
          ),
          delayedAtMost: (queue) => DelayedAtMost.of({ ...env, management }, queue)
        }),
    purge: (queue) =>
      orMissing(
        queue,
        Effect.map(
          declarer.onChannel("purge", queue, (channel) => channel.purgeQueue(queue)),
          ({ messageCount }) => messageCount
        ),
        0
      )
  }
}
