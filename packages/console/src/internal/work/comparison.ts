/**
 * Compares queues with their brokers: the objects that each queue needs, and their states. All requests share one comparison of a
 * queue, and few run on a broker at the same time, because each opens a connection.
 */
import { Delay } from "@requeue/core"
import { type Adapter, type Capabilities, type Plan } from "@requeue/core/port"
import * as Clock from "effect/Clock"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type * as Scope from "effect/Scope"
import * as Semaphore from "effect/Semaphore"
import type { Queue } from "../../BrokerSource.ts"
import { type Connection, Trouble } from "./connections.ts"
import * as Secrets from "../secrets.ts"
import * as Deadline from "./deadline.ts"

/** A queue's plan, compared with its broker. */
interface Compared {
  readonly plan: Plan.Plan
  readonly inspection: Plan.Inspection
  readonly capabilities: Capabilities.Capabilities
  /** The time of the comparison in milliseconds since the epoch. */
  readonly at: number
}

/** A comparison, or the reason why there is none. */
export interface Comparison {
  readonly compared: Compared | undefined
  /** The plan. If the broker does not answer, it is the plan for the broker's newest version. */
  readonly plan: Plan.Plan | undefined
  /** Why there is no comparison. */
  readonly trouble: string | undefined
  /** Why this broker cannot have the queue. */
  readonly refusal: string | undefined
}

const nothing: Comparison = { compared: undefined, plan: undefined, trouble: undefined, refusal: undefined }

/** Compares a queue with its broker, within the time limit of a page. */
export type Compare = (connection: Connection, queue: Queue) => Effect.Effect<Comparison>

/** Milliseconds for which a comparison is valid, and milliseconds until a comparison times out. */
const lasts = { good: 10_000, tried: 30_000 }

/** The largest number of simultaneous comparisons on one broker. */
const atOnce = 2

interface Round {
  readonly end: Deferred.Deferred<Compared, Trouble>
  ended: number | undefined
}

const none = "its adapter does not report which objects it creates on the broker"

/** Returns texts of an adapter without secrets. */
const struck = <A>(told: A, mask: (text: string) => string): A => Secrets.struck(told, mask) as A // Of the same shape.

/** Makes comparisons, which end when the scope closes. `timeout` is in milliseconds. */
export const make = (timeout: number): Effect.Effect<Compare, never, Scope.Scope> =>
  Effect.map(Effect.scope, (scope) => {
    const rounds = new Map<string, Round>()
    const places = new Map<string, Semaphore.Semaphore>()

    const placesOf = (broker: string): Semaphore.Semaphore => {
      const known = places.get(broker) ?? Semaphore.makeUnsafe(atOnce)
      places.set(broker, known)
      return known
    }

    const ask = ({ contain, mask, operations }: Connection, request: Adapter.PlanRequest) =>
      contain(
        Effect.scoped(
          Effect.gen(function* () {
            if (operations === undefined) return yield* Effect.fail(new Error(none))
            const operator = yield* operations.operate
            const told = { plan: yield* operator.plan(request), inspection: yield* operator.inspect(request) }
            return { ...struck(told, mask), capabilities: operator.capabilities, at: yield* Clock.currentTimeMillis }
          })
        )
      )

    const run = (connection: Connection, request: Adapter.PlanRequest, round: Round) =>
      Effect.gen(function* () {
        const asked = Deadline.within(connection.name, lasts.tried)(ask(connection, request))
        const exit = yield* Effect.exit(placesOf(connection.name).withPermits(1)(asked))
        round.ended = yield* Clock.currentTimeMillis
        yield* Deferred.done(round.end, exit)
      })

    /** Returns the round of comparison that runs or has just ended, or begins a new one. */
    const roundOf = (connection: Connection, request: Adapter.PlanRequest) =>
      Effect.gen(function* () {
        const now = yield* Clock.currentTimeMillis
        const key = JSON.stringify([connection.name, request.queue])
        const current = rounds.get(key)
        if (current !== undefined && (current.ended ?? now) > now - lasts.good) return current
        const begun: Round = { end: Deferred.makeUnsafe(), ended: undefined }
        rounds.set(key, begun)
        yield* Effect.forkIn(run(connection, request, begun), scope)
        return begun
      })

    return (connection, { name, retry }) =>
      Effect.gen(function* () {
        const { contain, mask, operations } = connection
        const request = { queue: name, retry }
        if (operations === undefined) return { ...nothing, trouble: none }
        const { end } = yield* roundOf(connection, request)
        const late = new Trouble({ broker: connection.name, message: `no answer within ${Delay.format(timeout)}` })
        const exit = yield* Effect.exit(
          Effect.timeoutOrElse(Deferred.await(end), { duration: timeout, orElse: () => Effect.fail(late) })
        )
        if (Exit.isSuccess(exit)) return { ...nothing, compared: exit.value, plan: exit.value.plan }
        const error = Exit.findErrorOption(exit)
        const trouble = error._tag === "Some" ? error.value.message : "the comparison was interrupted"
        return yield* contain(Effect.suspend(() => operations.plan(request))).pipe(
          Effect.match({
            onSuccess: (plan): Comparison => ({ ...nothing, plan: struck(plan, mask), trouble }),
            onFailure: ({ message }): Comparison => ({ ...nothing, refusal: message })
          })
        )
      })
  })
