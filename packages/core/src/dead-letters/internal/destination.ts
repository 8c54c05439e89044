/** Queues that letters go to, or come back to, must be there: nobody would read the letters in one that is misspelt or gone. */
import * as Effect from "effect/Effect"
import * as RetryPolicy from "../../policy/RetryPolicy.ts"
import type { Service } from "../../port/Broker.ts"
import { BrokerError } from "../../port/BrokerError.ts"

/** The dead-letter queues to which letters may come back: some names, or those of each queue that is redriven to. */
export type Watched = ReadonlyArray<string> | ((queue: string) => ReadonlyArray<string>)

/** Fails where the broker says that it does not have the queue. To ask makes none. */
const exists = (
  { admin, capabilities: { broker } }: Service,
  queue: string,
  operation: string,
  remedy: string
): Effect.Effect<void, BrokerError> =>
  Effect.gen(function* () {
    // Who may publish to it may not always count it.
    const isMissing = yield* Effect.catchIf(
      Effect.map(admin.counts(queue), (counts) => counts.isMissing === true),
      ({ reason }: BrokerError) => reason === "AccessRefused",
      () => Effect.succeed(false)
    )
    if (!isMissing) return
    const detail = "there is no such queue"
    return yield* new BrokerError({ broker, operation, queue, reason: "QueueMissing", detail, remedy })
  })

/** Fails where letters must not go to the queue, because it is missing. */
export const check = (broker: Service, queue: string, create: boolean): Effect.Effect<void, BrokerError> =>
  create
    ? Effect.void
    : exists(broker, queue, "publish", "Give to another queue, or let it be made: { create: true }, --create")

/** The queues of `watch` that are named, all of which must be there. */
export const named = (
  broker: Service,
  watch: Watched | undefined
): Effect.Effect<ReadonlyArray<string>, BrokerError> => {
  const names = typeof watch === "object" ? watch : []
  return Effect.as(
    Effect.forEach(names, (name) => exists(broker, name, "watch", "Give the names of queues that are there")),
    names
  )
}

/** The dead-letter queues of a queue that is redriven to: those of the default policy, unless `watch` tells. */
export const deadLetterQueues = (queue: string, watch: Watched | undefined): ReadonlyArray<string> => {
  if (watch === undefined) return RetryPolicy.deadLetterQueues(RetryPolicy.make(), queue)
  return typeof watch === "function" ? watch(queue) : []
}

interface Options {
  readonly create?: boolean | undefined
  readonly to?: string | undefined
  readonly watch?: Watched | undefined
}

/** Lets letters go to queues: `enter` must be done before the first one goes to a queue, and `targets` are those that it let. */
export const gate = (
  broker: Service,
  { create, to, watch }: Options,
  add: (queues: ReadonlyArray<string>) => Effect.Effect<void, BrokerError> = () => Effect.void
) => {
  const targets = new Set<string>()
  const missing = new Map<string, BrokerError>()
  const enter = (queue: string): Effect.Effect<void, BrokerError> =>
    Effect.suspend(() => {
      if (targets.has(queue)) return Effect.void
      const refusal = missing.get(queue)
      if (refusal !== undefined) return Effect.fail(refusal)
      // Without `to`, a letter names the queue, and anybody may have written that.
      return check(broker, queue, create ?? to !== undefined).pipe(
        Effect.tapError((error) => Effect.sync(() => error.isRetryable || missing.set(queue, error))),
        Effect.andThen(add(deadLetterQueues(queue, watch))),
        Effect.tap(() => Effect.sync(() => targets.add(queue)))
      )
    })
  return { enter, targets }
}
