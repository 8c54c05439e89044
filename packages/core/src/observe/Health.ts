/**
 * Health: the state of consumers and their broker as one value, for readiness and liveness probes. It can be printed as
 * JSON, and shows why a consumer takes no messages.
 */
import * as Effect from "effect/Effect"
import { Broker, type Counts } from "../port/Broker.ts"
import type { Connection } from "../port/Connection.ts"
import * as Counting from "../port/Counting.ts"

/** The state of a consumer backoff. */
export interface Backoff {
  /**
   * `handler`: handlers fail. `broker`: the broker does not take retries or dead letters, or refuses so many settlements
   * that the messages in quarantine leave no room for others. `operator`: the consumer was told to pause.
   */
  readonly because: "handler" | "broker" | "operator"
  /** `paused`: no message is taken. `probing`: one is taken, or awaited. `running`: all are taken. */
  readonly state: "paused" | "probing" | "running"
  /** How far the pauses have grown. */
  readonly level: number
  /** When the pause ends, in milliseconds since the epoch; `undefined` when there is none. */
  readonly until: number | undefined
}

/** The health of one consumer. */
export interface ConsumerHealth {
  readonly queue: string
  /**
   * - `running`: takes messages.
   * - `paused`, `probing`: held back, see `backoff`.
   * - `stalled`: has messages, nothing holds them back, and none of them has moved for a minute longer than handlers and
   *   batches may take. This is a defect; a restart helps.
   * - `down`: the broker cannot be reached, or does not give the messages of the queue; `trouble` tells why. The consumer goes
   *   on by itself when it does.
   * - `draining`: takes no more messages; its handlers may finish.
   * - `stopped`: was stopped, or stopped itself, see `error`.
   */
  readonly state: "running" | "paused" | "probing" | "stalled" | "down" | "draining" | "stopped"
  /** Why the broker does not give the messages of the queue, and since when, in milliseconds since the epoch. */
  readonly trouble: { readonly since: number; readonly because: string } | undefined
  /** The backoffs whose level is not 0, or that are not running. */
  readonly backoff: ReadonlyArray<Backoff>
  /** The number of messages that wait for their batch, or for the codec before. */
  readonly buffered: number
  /** The number of messages whose handler runs, or whose settlement is under way. */
  readonly inProgress: number
  /** The number of messages of which the broker refuses every settlement; see the event `Quarantined`. */
  readonly quarantined: number
  /** When the last message arrived, in milliseconds since the epoch; `undefined` before the first. */
  readonly lastDelivery: number | undefined
  /** When the broker took the last settlement, in milliseconds since the epoch; `undefined` before the first. */
  readonly lastSettled: number | undefined
  /** Why it stopped itself; `undefined` when it did not. */
  readonly error: string | undefined
}

/** A consumer's health, with the counts of its queue. */
export interface QueueHealth extends ConsumerHealth {
  /** `undefined` when the broker cannot tell, cannot be reached, or does not answer within a second. */
  readonly counts: Counts | undefined
}

/** The health of a broker and its consumers. */
export interface Health {
  /** The broker's name, for example `memory`. */
  readonly broker: string
  readonly connection: Connection
  readonly consumers: ReadonlyArray<QueueHealth>
}

/** The strictest state of several backoffs. It is that of their consumer. */
export const strictest = (backoff: ReadonlyArray<Backoff>): Backoff["state"] =>
  (["paused", "probing"] as const).find((state) => backoff.some((each) => each.state === state)) ?? "running"

/**
 * The health of the broker and these consumers. It never fails, and takes about a second at most.
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
    const broker = yield* Broker
    const { capabilities, connection } = broker
    const isUp = connection().state === "up"
    // A probe must answer even when the broker does not.
    const counts = (queue: string): Effect.Effect<Counts | undefined> =>
      Effect.catchCause(Counting.within(broker, queue, Counting.brief), () => Effect.undefined)
    return {
      broker: capabilities.broker,
      connection: connection(),
      consumers: yield* Effect.forEach(
        consumers,
        ({ health }) => {
          const seen = health()
          return isUp
            ? Effect.map(counts(seen.queue), (found) => ({ ...seen, counts: found }))
            : Effect.succeed({ ...seen, counts: undefined })
        },
        { concurrency: "unbounded" }
      )
    }
  })

/**
 * Whether messages can be handled now: the broker can be reached, and every consumer takes messages.
 *
 * When to use: for a readiness probe. A consumer that a backoff pauses is not ready, so that a release whose handler always
 * fails is not rolled out.
 */
export const isReady = ({ connection, consumers }: Health): boolean =>
  connection.state === "up" && consumers.every(({ state }) => state === "running" || state === "probing")

/**
 * Whether no consumer has stopped itself or is stalled.
 *
 * When to use: for a liveness probe. A lost connection does not count, because it is made again without a restart, and
 * neither does a consumer that is `down`. A consumer whose `deadLetterBudget` is used up does; mind that a restart gives it a new budget.
 */
export const isLive = ({ consumers }: Health): boolean =>
  consumers.every(({ error, state }) => error === undefined && state !== "stalled")
