/**
 * How a consumer and its broker are, as one value that can be printed as JSON: for readiness and liveness probes, and for
 * whoever wants to see what holds a consumer up.
 */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import { Broker, type Counts } from "../port/Broker.ts"
import type { Connection } from "../port/Connection.ts"

/** What a consumer backoff does at the moment. */
export interface Backoff {
  /** `handler`: handlers fail. `broker`: the broker does not take retries or dead letters. */
  readonly because: "handler" | "broker"
  /** `paused`: nothing is taken. `probing`: one message is let through, or awaited. `running`: all is taken again. */
  readonly state: "paused" | "probing" | "running"
  /** How far the pauses have grown. */
  readonly level: number
  /** When the pause ends, in milliseconds since the epoch. */
  readonly until: number | undefined
}

export interface ConsumerHealth {
  readonly queue: string
  /**
   * - `running`: takes messages.
   * - `paused`, `probing`: held back by a consumer backoff, see `backoff`.
   * - `draining`: takes no more; its handlers may finish.
   * - `stopped`: has ended, because it was asked to, or by itself, see `error`.
   */
  readonly state: "running" | "paused" | "probing" | "draining" | "stopped"
  /** Every backoff that is not at rest. */
  readonly backoff: ReadonlyArray<Backoff>
  /** Messages that wait for their batch. */
  readonly buffered: number
  /** Messages that a handler has, or that are being settled. */
  readonly inProgress: number
  /** When the last message came, and when the broker took the last settlement, in milliseconds since the epoch. */
  readonly lastDelivery: number | undefined
  readonly lastSettled: number | undefined
  /** Why it has stopped itself. */
  readonly error: string | undefined
}

/** A consumer's health, with what waits in its queue. */
export interface QueueHealth extends ConsumerHealth {
  /** `undefined` when the broker cannot tell, is not reached, or does not answer within a second. */
  readonly counts: Counts | undefined
}

export interface Health {
  /** The broker's name, for example `memory`. */
  readonly broker: string
  readonly connection: Connection
  readonly consumers: ReadonlyArray<QueueHealth>
}

/** What all backoffs together let the consumer do. */
export const strictest = (backoff: ReadonlyArray<Backoff>): Backoff["state"] =>
  (["paused", "probing"] as const).find((state) => backoff.some((each) => each.state === state)) ?? "running"

/** Longest wait for a queue's numbers: a probe must answer while the broker does not. */
const patience = "1 second"

/**
 * Asks the broker and these consumers how they are. Never fails, and answers within about a second.
 *
 * @example
 * ```ts
 * import { MemoryBroker } from "@requeue/adapter-memory"
 * import { Consumer, Health } from "@requeue/core"
 * import { Effect } from "effect"
 *
 * const program = Effect.gen(function* () {
 *   const consumer = yield* Consumer.start("orders", {}, () => {})
 *   return Health.isReady(yield* Health.check([consumer]))
 * })
 *
 * await Effect.runPromise(Effect.scoped(program).pipe(Effect.provide(MemoryBroker.layer()))) // => true
 * ```
 */
export const check = (
  consumers: Iterable<{ readonly health: () => ConsumerHealth }>
): Effect.Effect<Health, never, Broker> =>
  Effect.gen(function* () {
    const { admin, capabilities, connection } = yield* Broker
    const isUp = connection().state === "up"
    const counts = (queue: string) =>
      admin.counts(queue).pipe(Effect.timeoutOption(patience), Effect.orElseSucceed(Option.none<Counts>))
    return {
      broker: capabilities.broker,
      connection: connection(),
      consumers: yield* Effect.forEach(
        consumers,
        ({ health }) => {
          const seen = health()
          return isUp
            ? Effect.map(counts(seen.queue), (found) => ({ ...seen, counts: Option.getOrUndefined(found) }))
            : Effect.succeed({ ...seen, counts: undefined })
        },
        { concurrency: "unbounded" }
      )
    }
  })

/**
 * Whether messages can be worked on now: the broker is reached, and every consumer takes messages.
 *
 * When to use: for a readiness probe. A consumer that is paused by a backoff is not ready: a release whose handler always
 * fails is not rolled out.
 */
export const isReady = ({ connection, consumers }: Health): boolean =>
  connection.state === "up" && consumers.every(({ state }) => state === "running" || state === "probing")

/**
 * Whether waiting can help: no consumer has stopped itself.
 *
 * When to use: for a liveness probe. A lost connection is no reason to restart a process: it is made again by itself. A
 * consumer whose `deadLetterBudget` is used up is one, but its restart spends the budget anew.
 */
export const isLive = ({ consumers }: Health): boolean => consumers.every(({ error }) => error === undefined)
