/**
 * The queues of a broker. All requests share one round of questions. A page waits for its end only a moment, then it shows the last
 * answers and their age: a slow broker does not delay the others.
 *
 * After the last request it goes on asking for as long as it keeps samples, and then stops until the next request.
 */
import { Delay } from "@requeue/core"
import { QueueStatus } from "@requeue/operations"
import * as Clock from "effect/Clock"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type * as Scope from "effect/Scope"
import type { Connection } from "./connections.ts"
import * as Deadline from "./deadline.ts"
import * as History from "./history.ts"

/** A queue with its status; without a status before the first answer. Each answer makes a new object. */
export interface QueueView {
  readonly queue: string
  readonly status: QueueStatus.QueueStatus | undefined
  readonly samples: ReadonlyArray<History.Sample>
  /** The time of the answer in milliseconds since the epoch. */
  readonly at: number | undefined
}

/** A broker and its queues. */
export interface BrokerView {
  readonly name: string
  readonly queues: ReadonlyArray<QueueView>
  /** Why the broker does not answer. */
  readonly trouble: string | undefined
  /** The time of the last failure in milliseconds since the epoch; `undefined` if the broker answers. */
  readonly troubleAt: number | undefined
  /** Why parts of the broker do not answer. */
  readonly missing: ReadonlyArray<string>
  /** The time of the oldest answer in milliseconds since the epoch; `undefined` before the first answer. */
  readonly asOf: number | undefined
}

/** The queues of a broker. */
export interface Overview {
  /** Asks the broker, and returns the last known answers after a moment. */
  readonly look: Effect.Effect<BrokerView>
  /** Returns the view of an open page, for which the broker is asked more often. `now` is in milliseconds since the epoch. */
  readonly watch: (now: number) => BrokerView
}

/** Milliseconds until a round times out. */
const longest = 60_000

/** Milliseconds for which the answers of a round are valid: several reloads share one round. */
const fresh = 2000

/** Milliseconds that a page waits for a round. */
const moment = 200

/**
 * Milliseconds between two rounds: with an open page and a broker that is down, with an open page, and without one. `share` is the
 * most part of the time that rounds may take. Questions to SQS have a price.
 */
const pauses = { down: 2000, watched: 5000, else: History.step, share: 0.1 }

/** Milliseconds between two checks for the next round. */
const tick = 1000

interface Round {
  readonly begun: number
  readonly end: Deferred.Deferred<void>
  ended: number | undefined
}

const ask = (connection: Connection, known: Map<string, QueueView>) =>
  connection.use((broker) =>
    Effect.forEach(
      connection.queues,
      ({ name: queue, retry }) =>
        Effect.gen(function* () {
          const status = yield* QueueStatus.of(broker, { queue, retry })
          const at = yield* Clock.currentTimeMillis
          const samples = History.add(known.get(queue)?.samples ?? [], status, at)
          known.set(queue, { queue, status, samples, at })
        }),
      { concurrency: QueueStatus.atOnce, discard: true }
    )
  )

/** Makes an overview, which ends with the scope. `timeout` is in milliseconds. */
export const make = (connection: Connection, timeout: number): Effect.Effect<Overview, never, Scope.Scope> =>
  Effect.map(Effect.scope, (scope) => {
    const { mask, name, queues } = connection
    const known = new Map<string, QueueView>(
      queues.map(({ name: queue }) => [queue, { queue, status: undefined, samples: [], at: undefined }])
    )
    let current: Round | undefined
    let trouble: { readonly why: string; readonly at: number } | undefined
    let [seen, watched, isAwake] = [0, 0, false]

    const run = (round: Round) =>
      Effect.gen(function* () {
        const exit = yield* Effect.exit(Deadline.within(name, longest)(ask(connection, known)))
        const error = Exit.isFailure(exit) ? Exit.findErrorOption(exit) : undefined
        const at = yield* Clock.currentTimeMillis
        trouble = error?._tag === "Some" ? { why: error.value.message, at } : undefined
        round.ended = at
        yield* Deferred.succeed(round.end, undefined)
      })
    /** Returns the round that runs or has just ended, or begins a new one. */
    const round = Effect.gen(function* () {
      const now = yield* Clock.currentTimeMillis
      if (current !== undefined && (current.ended ?? now) > now - fresh) return current
      const begun: Round = { begun: now, end: Deferred.makeUnsafe(), ended: undefined }
      current = begun
      yield* Effect.forkIn(run(begun), scope)
      return begun
    })
    const isDue = (now: number): boolean => {
      const { begun, ended } = current ?? { begun: 0, ended: 0 }
      if (ended === undefined) return false
      const isWatched = now - watched < fresh
      if (isWatched && trouble !== undefined) return now - ended >= pauses.down
      return now - begun >= Math.max(isWatched ? pauses.watched : pauses.else, (ended - begun) / pauses.share)
    }
    const goOn = Effect.gen(function* () {
      for (let now = seen; now - seen < History.step * History.steps; now = yield* Clock.currentTimeMillis) {
        if (isDue(now)) yield* round
        yield* Effect.sleep(tick)
      }
      isAwake = false
    })

    const view = (now: number): BrokerView => {
      const all = queues.map(({ name }) => known.get(name)!)
      const times = all.flatMap(({ at }) => at ?? [])
      const isLate = times.length === 0 && current?.ended === undefined && now - (current?.begun ?? now) >= timeout
      return {
        name,
        queues: all,
        trouble: trouble?.why ?? (isLate ? `no answer within ${Delay.format(timeout)}` : undefined),
        troubleAt: trouble?.at ?? (isLate ? now : undefined),
        missing: [...new Set(all.flatMap(({ status }) => (status?.missing ?? []).map(({ message }) => mask(message))))],
        asOf: times.length === 0 ? undefined : Math.min(...times)
      }
    }

    return {
      look: Effect.gen(function* () {
        seen = yield* Clock.currentTimeMillis
        const { end } = yield* round
        if (!isAwake) {
          isAwake = true
          yield* Effect.forkIn(goOn, scope)
        }
        yield* Effect.timeoutOption(Deferred.await(end), moment)
        return view(yield* Clock.currentTimeMillis)
      }),
      watch: (now) => {
        seen = now
        watched = now
        return view(now)
      }
    }
  })
