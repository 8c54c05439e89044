/**
 * Health: the state of consumers and their broker as one value, for readiness and liveness probes. It can be printed as
 * JSON, and shows why a consumer takes no messages.
 */
import * as Effect from "effect/Effect"
import { Broker, type Counts, type Service } from "../port/Broker.ts"
import type { Connection } from "../port/Connection.ts"
import * as OptionKind from "../options/OptionKind.ts"
import * as OptionNames from "../options/OptionNames.ts"
import * as Counting from "../port/Counting.ts"

/** The state of a consumer backoff. */
export interface Backoff {
  /**
   * `handler`: handlers fail. `broker`: the broker does not accept retries or dead letters, or refuses so many
   * settlements that their messages leave no room for others. `operator`: the program has paused the consumer.
   */
  readonly because: "handler" | "broker" | "operator"
  /**
   * `paused`: the consumer takes no messages. `probing`: it takes one message as a test. `running`: it takes all
   * messages.
   */
  readonly state: "paused" | "probing" | "running"
  /** The level of the backoff. Each level doubles the pause; 0 without failures. */
  readonly level: number
  /** When the pause ends, in milliseconds since the epoch; `undefined` if there is no pause, or if it has no fixed end. */
  readonly until: number | undefined
  /** The error of the last settlement that failed, if `because` is `broker`. Default: none has failed. */
  readonly error?: string | undefined
}

/** The health of one consumer. */
export interface ConsumerHealth {
  readonly queue: string
  /**
   * - `running`: takes messages.
   * - `paused`, `probing`: takes no messages, or one as a test; see `backoff`.
   * - `stalled`: has messages that nothing holds back, but has made no progress for a minute longer than handlers and
   *   batches may take. This is a defect; a restart helps.
   * - `down`: the broker cannot be reached, or does not deliver the messages of the queue; see `trouble`. The consumer
   *   continues automatically.
   * - `draining`: has stopped consuming; running handlers may finish.
   * - `stopped`: was drained, or stopped itself, see `error`.
   */
  readonly state: "running" | "paused" | "probing" | "stalled" | "down" | "draining" | "stopped"
  /** Why the broker does not deliver the messages of the queue, and since when, in milliseconds since the epoch. */
  readonly trouble: { readonly since: number; readonly because: string } | undefined
  /** The backoffs that limit this consumer, or whose level is above 0. */
  readonly backoff: ReadonlyArray<Backoff>
  /** The number of messages that wait for the codec or for their batch. */
  readonly buffered: number
  /** The number of messages whose handler runs, or that are being settled. */
  readonly inProgress: number
  /**
   * The number of messages that the consumer keeps because the broker refuses to settle them; see the event
   * `Quarantined`.
   */
  readonly quarantined: number
  /** When the last message arrived, in milliseconds since the epoch; `undefined` before the first. */
  readonly lastDelivery: number | undefined
  /** When the broker accepted the last settlement, in milliseconds since the epoch; `undefined` before the first. */
  readonly lastSettled: number | undefined
  /** Why the consumer stopped itself; `undefined` if it did not. */
  readonly error: string | undefined
}

/** A consumer's health, with the counts of its queue. */
export interface QueueHealth extends ConsumerHealth {
  /**
   * The message counts of the queue; `undefined` if the broker has no counts, cannot be reached, or does not answer
   * within a second.
   */
  readonly counts: Counts | undefined
}

/** The health of a broker. */
export interface BrokerHealth {
  /** The broker's name, for example `memory`. */
  readonly broker: string
  readonly connection: Connection
}

/** The health of a broker, its store and its consumers. */
export interface Health extends BrokerHealth {
  /** The health of the broker's store. Default: the broker has none. */
  readonly store?: BrokerHealth | undefined
  readonly consumers: ReadonlyArray<QueueHealth>
}

/**
 * Returns the health of the broker, its store and these consumers. It never fails, and takes about a second at most.
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
    const { outbox, store } = broker
    const counted = ({ health }: { readonly health: () => ConsumerHealth }) => {
      const seen = health()
      const home = store !== undefined && seen.queue === outbox ? store : broker
      return Effect.map(countsOf(home, seen.queue), (counts) => ({ ...seen, counts }))
    }
    return {
      ...ofBroker(broker),
      ...(store && { store: ofBroker(store) }),
      consumers: yield* Effect.forEach(consumers, counted, { concurrency: "unbounded" })
    }
  })

const ofBroker = ({ capabilities, connection }: Service): BrokerHealth => ({
  broker: capabilities.broker,
  connection: connection()
})

/** A probe must answer even when the broker does not. */
const countsOf = (broker: Service, queue: string): Effect.Effect<Counts | undefined> =>
  broker.connection().state === "up"
    ? Effect.catchCause(Counting.within(broker, queue, Counting.brief), () => Effect.undefined)
    : Effect.undefined

/** Why a consumer works less than it could, though it is alive. */
export interface Degradation {
  readonly queue: string
  /**
   * - `backoff`: handlers fail, or the broker does not accept retries or dead letters. The consumer pauses, or tests
   *   with one message whether that has changed.
   * - `quarantine`: the broker refuses every settlement of some messages.
   * - `trouble`: the broker does not deliver the messages of the queue.
   * - `paused`: the program has paused the consumer.
   */
  readonly reason: "backoff" | "quarantine" | "trouble" | "paused"
  /** The reason as a sentence, such as `handlers fail; the next attempt is at 2030-01-01T00:00:00.000Z`. */
  readonly because: string
}

const causes = {
  handler: "handlers fail",
  broker: "the broker does not take retries, dead letters or other settlements"
} as const

const ofBackoff = ({ because, error, level, state, until }: Backoff): Pick<Degradation, "reason" | "because"> => {
  if (because === "operator") return { reason: "paused", because: "the program has paused the consumer" }
  const next =
    state === "probing"
      ? "one message is tried"
      : until === undefined
        ? `the level of the backoff is ${level}`
        : `the next attempt is at ${new Date(until).toISOString()}`
  const cause = error === undefined ? causes[because] : `${causes[because]}: ${error}`
  return { reason: "backoff", because: `${cause}; ${next}` }
}

const ofConsumer = ({ backoff, quarantined, queue, trouble }: ConsumerHealth): ReadonlyArray<Degradation> => [
  ...backoff.map((each) => ({ queue, ...ofBackoff(each) })),
  ...(quarantined === 0
    ? []
    : [
        {
          queue,
          reason: "quarantine" as const,
          because: `the broker refuses every settlement of ${quarantined} messages`
        }
      ]),
  ...(trouble === undefined ? [] : [{ queue, reason: "trouble" as const, because: trouble.because }])
]

/**
 * Returns why consumers work less than they could: one entry for each reason of each consumer. The list is empty if all
 * is well.
 *
 * When to use: for a warning, and in the answer of a readiness probe. A degraded process still counts as ready.
 */
export const degraded = (health: Health): ReadonlyArray<Degradation> => {
  checkHealth("degraded", health)
  return health.consumers.flatMap(ofConsumer)
}

/** The options of {@link isReady}. */
export interface ReadyOptions {
  /**
   * The reasons in {@link degraded} that make the process unready. `["backoff"]` stops the rollout of a release whose
   * handlers always fail. Default: none, because a process that also serves requests would get no requests while its
   * handlers fail.
   */
  readonly unreadyWhen?: ReadonlyArray<Degradation["reason"]> | undefined
}

const reasons: ReadonlyArray<unknown> = ["backoff", "quarantine", "trouble", "paused"]

const readyKinds: OptionNames.Of<ReadyOptions> = {
  unreadyWhen: {
    expected: 'an array of "backoff", "quarantine", "trouble" and "paused"',
    holds: (value) => Array.isArray(value) && value.every((each) => reasons.includes(each))
  }
}

/** The health that a call was given, which may be the promise of it. */
const healthKind: OptionKind.OptionKind = {
  expected: "the value of requeue.health() or Health.check",
  holds: (value) => OptionKind.isObject(value) && "connection" in value && "consumers" in value
}

const checkHealth = (call: string, health: unknown): void => {
  const remedy = () => `Write ${call}(await requeue.health())`
  OptionNames.orThrow(OptionNames.argument(call, "health", health, { ...healthKind, remedy }))
}

/** The states of a consumer that can take work, now or after a pause. */
const able: ReadonlySet<ConsumerHealth["state"]> = new Set(["running", "paused", "probing"])

/**
 * Whether the process can take work: the broker and its store can be reached, and every consumer is subscribed. A consumer that a
 * backoff pauses counts as ready; {@link degraded} lists it.
 *
 * When to use: for a readiness probe.
 *
 * @throws RangeError when `health` is a promise that was not awaited, or an option is unknown or of the wrong kind
 */
export const isReady = (health: Health, options: ReadyOptions = {}): boolean => {
  checkHealth("isReady", health)
  OptionNames.check("isReady", options, readyKinds)
  const { unreadyWhen = [] } = options
  return (
    health.connection.state === "up" &&
    (health.store === undefined || health.store.connection.state === "up") &&
    health.consumers.every(({ state }) => able.has(state)) &&
    (unreadyWhen.length === 0 || degraded(health).every(({ reason }) => !unreadyWhen.includes(reason)))
  )
}

/**
 * Whether the process is alive: no consumer has stopped itself or is stalled.
 *
 * When to use: for a liveness probe. A lost connection and a consumer that is `down` do not count, because they recover
 * without a restart. A consumer that has used up its `deadLetterBudget` has stopped itself. A restart gives it a new
 * budget.
 */
export const isLive = (health: Health): boolean => {
  checkHealth("isLive", health)
  return health.consumers.every(({ error, state }) => error === undefined && state !== "stalled")
}
