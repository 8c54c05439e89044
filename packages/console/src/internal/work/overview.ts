/**
 * The queues of a broker, as far as it has answered. All who look share one round of questions, and a page waits for its end only
 * for so long: then it shows what is known, and how old that is. So a broker that is slow or down hides no other.
 */
import { Delay, QueueStatus } from "@requeue/core"
import * as Clock from "effect/Clock"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type * as Scope from "effect/Scope"
import type { Connection } from "./connections.ts"
import * as Deadline from "./deadline.ts"

/** A queue; without a status where its broker has not answered yet. */
export interface QueueView {
  readonly queue: string
  readonly status: QueueStatus.QueueStatus | undefined
}

/** A broker and its queues. */
export interface BrokerView {
  readonly name: string
  readonly queues: ReadonlyArray<QueueView>
  /** Why it does not answer. */
  readonly trouble: string | undefined
  /** Why parts of it do not answer. */
  readonly missing: ReadonlyArray<string>
  /** When the oldest of the answers came, in milliseconds since the epoch; `undefined` where there is none. */
  readonly asOf: number | undefined
}

/** The queues of a broker. */
export type Overview = Effect.Effect<BrokerView>

/** Queues that are asked for at a time. */
const atOnce = 32

/** Milliseconds after which a round is given up. */
const longest = 60_000

/** Milliseconds for which the answers of a round are good: reloads of several operators are one round. */
const fresh = 2000

/** Milliseconds that a page waits for newer answers where it has some of all queues that are not too old, and that age. */
const glance = { wait: 200, age: 30_000 }

interface Known {
  readonly status: QueueStatus.QueueStatus
  readonly at: number
}

interface Round {
  /** Why it failed; `undefined` when all is known. */
  readonly end: Deferred.Deferred<string | undefined>
  ended: number | undefined
}

/** An overview that asks when somebody looks, until the scope closes. `timeout` is in milliseconds. */
export const make = (connection: Connection, timeout: number): Effect.Effect<Overview, never, Scope.Scope> =>
  Effect.map(Effect.scope, (scope) => {
    const { mask, name, queues, use } = connection
    const known = new Map<string, Known>()
    let current: Round | undefined

    const ask = use((broker) =>
      Effect.forEach(
        queues,
        ({ name: queue, retry }) =>
          Effect.flatMap(QueueStatus.of(broker, { queue, retry }), (status) =>
            Effect.map(Clock.currentTimeMillis, (at) => void known.set(queue, { status, at }))
          ),
        { concurrency: atOnce, discard: true }
      )
    )
    const run = (round: Round) =>
      Effect.gen(function* () {
        const exit = yield* Effect.exit(Deadline.within(name, longest)(ask))
        const error = Exit.isFailure(exit) ? Exit.findErrorOption(exit) : undefined
        round.ended = yield* Clock.currentTimeMillis
        yield* Deferred.succeed(round.end, error?._tag === "Some" ? error.value.message : undefined)
      })
    /** The round that runs or has just ended, or a new one. */
    const round = Effect.gen(function* () {
      const now = yield* Clock.currentTimeMillis
      if (current !== undefined && (current.ended ?? now) > now - fresh) return current
      const begun: Round = { end: Deferred.makeUnsafe(), ended: undefined }
      current = begun
      yield* Effect.forkIn(run(begun), scope)
      return begun
    })

    return Effect.gen(function* () {
      const { end } = yield* round
      const now = yield* Clock.currentTimeMillis
      const isRecent = queues.every(({ name }) => (known.get(name)?.at ?? 0) > now - glance.age)
      const late = `no answer within ${Delay.format(timeout)}`
      const trouble = yield* Effect.timeoutOrElse(Deferred.await(end), {
        duration: isRecent ? Math.min(timeout, glance.wait) : timeout,
        orElse: () => Effect.sync(() => (known.size === 0 ? late : undefined))
      })
      const statuses = queues.flatMap(({ name }) => known.get(name) ?? [])
      return {
        name,
        queues: queues.map(({ name }) => ({ queue: name, status: known.get(name)?.status })),
        trouble,
        missing: [
          ...new Set(statuses.flatMap(({ status: { missing = [] } }) => missing.map(({ message }) => mask(message))))
        ],
        asOf: statuses.length === 0 ? undefined : Math.min(...statuses.map(({ at }) => at))
      }
    })
  })
