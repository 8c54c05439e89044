/**
 * The Promise face: the same engine for programs that use no Effect.
 *
 * `connect` returns a {@link Requeue}: send, consume, pull, close. Every promise rejects with
 * the typed errors of the modules behind it.
 */
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"
import * as Adapters from "./Adapters.ts"
import { Broker, type Counts } from "../port/Broker.ts"
import type { BrokerError } from "../port/BrokerError.ts"
import * as Log from "../port/Log.ts"
import * as Consumer from "../consume/Consumer.ts"
import * as Delay from "../message/Delay.ts"
import * as Health from "../observe/Health.ts"
import * as Counting from "../port/Counting.ts"
import type { Batch, BatchHandler, Context, MessageHandler, Received } from "../message/Handler.ts"
import * as Options from "./internal/options.ts"
import type { ConnectOptions, ConsumeOptions, PullerOptions } from "./internal/options.ts"
import { patient } from "./internal/patient.ts"
import { resolve } from "./internal/resolve.ts"
import * as Session from "./internal/session.ts"
import type { Worker } from "./internal/session.ts"
import * as Checks from "../produce/internal/checks.ts"
import * as OptionNames from "../options/OptionNames.ts"
import * as Runtime from "../options/runtime.ts"
import type * as Producer from "../produce/Producer.ts"
import * as Puller from "../consume/Puller.ts"
import type * as QueueDefinition from "../message/QueueDefinition.ts"
import * as RetryPolicy from "../policy/RetryPolicy.ts"
import * as Telemetry from "../observe/Telemetry.ts"

export type { ConnectOptions, ConsumeOptions, Policies, PullerOptions } from "./internal/options.ts"
export { ConnectionClosed, type Worker } from "./internal/session.ts"

/** A running puller. Leaving its `await using` block drains it. */
export interface PullWorker<A> extends Worker {
  /**
   * The next batch; `undefined` when no message came within `wait` (default 5 seconds). Rejects with `PullerDrained`
   * once the puller has been drained.
   */
  readonly pull: (options?: Puller.PullOptions) => Promise<Puller.PulledBatch<A> | undefined>
}

/**
 * The answers that a handler may give: all but Effects that need services, since nobody provides them here. Such a handler is
 * for `Consumer.start`, or provides them itself with `Effect.provide`.
 */
export type Runnable<T> = [Needs<Awaited<T>>] extends [never]
  ? unknown
  : // Nothing is known of the Effects that `any` may be.
    unknown extends Needs<Awaited<T>>
    ? unknown
    : { readonly "this Effect needs services": Needs<Awaited<T>> }

type Needs<T> = T extends Effect.Effect<unknown, unknown, infer R> ? R : never

/** Options of `counts`. */
export interface CountsOptions {
  /**
   * Longest wait for the broker's answer, 1 ms to 24 hours; a number counts milliseconds. When it is over, `counts` rejects
   * with a `BrokerError` whose reason is `Timeout`; the first time is logged. Default: the adapter's own limit.
   */
  readonly timeout?: Delay.DurationInput | undefined
}

const effectKind = { expected: "an Effect", holds: Effect.isEffect }

const countsKinds: OptionNames.Of<CountsOptions> = { timeout: Delay.kind(1, Delay.max) }

/**
 * A connection to a broker. Leaving its `await using` block closes it.
 *
 * Every function rejects with RangeError for an option that is unknown, of another kind or out of its range, before
 * anything is done.
 */
export interface Requeue extends AsyncDisposable {
  /** The broker's name, for example `memory`. */
  readonly broker: string
  /** Resolves with the message's id once the broker has confirmed it. */
  readonly send: <A = QueueDefinition.AnyBody>(
    queue: QueueDefinition.Input<unknown, A>,
    body: NoInfer<A>,
    options?: Producer.SendOptions
  ) => Promise<string>
  /** Resolves with the ids once the broker has confirmed all. */
  readonly sendBatch: <A = QueueDefinition.AnyBody>(
    queue: QueueDefinition.Input<unknown, A>,
    entries: ReadonlyArray<Producer.BatchEntry<NoInfer<A>>>,
    options?: Producer.BatchOptions
  ) => Promise<ReadonlyArray<string>>
  /** Starts a consumer whose handler gets one message at a time. */
  readonly consume: <A = QueueDefinition.AnyBody, T = unknown>(
    queue: QueueDefinition.Input<A, never>,
    options: ConsumeOptions,
    handler: (message: Received<A>, context: Context) => T & Runnable<T>
  ) => Promise<Worker>
  /** Starts a consumer whose handler gets batches. */
  readonly consumeBatch: <A = QueueDefinition.AnyBody, T = unknown>(
    queue: QueueDefinition.Input<A, never>,
    options: ConsumeOptions,
    handler: (batch: Batch<A>, context: Context) => T & Runnable<T>
  ) => Promise<Worker>
  /** Makes a puller: take a batch when there is room for it, settle it later. */
  readonly puller: <A = QueueDefinition.AnyBody>(
    queue: QueueDefinition.Input<A, never>,
    options?: PullerOptions
  ) => Promise<PullWorker<A>>
  /**
   * Runs an Effect on this connection, such as an operation of a module that has no promises. Its scope is the connection's:
   * what it holds is returned when the connection closes.
   */
  readonly run: <A, E>(effect: Effect.Effect<A, E, Broker | Scope.Scope>) => Promise<A>
  /** Counts the messages of a queue, as far as the broker can tell. */
  readonly counts: (queue: string, options?: CountsOptions) => Promise<Counts>
  /**
   * How the connection and every consumer and puller are, as a value that can be printed as JSON. Answers within about a
   * second; see `isReady` and `isLive`.
   */
  readonly health: () => Promise<Health.Health>
  /**
   * Drains every consumer within the timeout (default: the consumer's `drainTimeout`; see there what it means for
   * a broker that does not answer), waits for sends under way, for `publishTimeout` at most, and closes the connection.
   *
   * Sends that have no answer by then, or when the timeout is over, reject with a `BrokerError`: its reason is
   * `ConnectionLost` when the broker may have the message, `ConnectionFailed` when it was not sent. Whatever else is under
   * way, or is used later, rejects with `ConnectionClosed`. A second call waits for the first, and its timeout may cut it
   * short.
   */
  readonly close: (timeout?: Delay.DurationInput) => Promise<void>
}

/**
 * Connects to a broker.
 *
 * @param broker a URL such as `memory:`, or an object of it and the adapter's options; the adapter is one of
 * `options.adapters`, or a package that is named as `adapter` or by the URL's scheme. Or the Layer of an adapter
 *
 * Rejects with RangeError for an option that is unknown or of another kind, with `ConfigurationError` for a URL that cannot be used, an unknown option, or an adapter that is not installed,
 * and with `BrokerError` when the broker cannot be reached within `options.waitForBroker`.
 *
 * @example
 * ```ts
 * import { connect, exponential } from "@requeue/core/promise"
 *
 * await using requeue = await connect("memory:")
 * await requeue.send("greetings", { hello: "world" })
 * await using worker = await requeue.consume(
 *   "greetings",
 *   { retry: { maxRetries: 5, backoff: exponential("1 second", { max: "5 minutes", jitter: "full" }) } },
 *   async (message) => console.log(message.body, message.attempts)
 * )
 * ```
 */
export const connect = async <E>(
  broker: Adapters.Address | Layer.Layer<Broker, E>,
  options: ConnectOptions = {}
): Promise<Requeue> => {
  Runtime.check()
  Options.connect(options)
  const { logLevel = "Warn", maxPending, publishTimeout } = options
  const session = await Session.open(await layerOf(broker, options), logLevel, { maxPending, publishTimeout })
  const { run, sender, start } = session
  const countWithin = counter()

  return {
    broker: session.broker,
    // Options are checked before anything is awaited, so that the error's stack leads to the call. No `async`: a send has
    // one promise.
    send: (queue, body, sendOptions) => {
      try {
        OptionNames.orThrow(Checks.send("requeue.send", queue, sendOptions))
        if (sendOptions?.delay !== undefined) Delay.parse("send.delay", sendOptions.delay)
        return run(sender.send(sender.accept(queue), body, sendOptions))
      } catch (error) {
        return rejected(error)
      }
    },
    sendBatch: async (queue, entries, batchOptions) => {
      OptionNames.orThrow(Checks.sendBatch("requeue.sendBatch", queue, entries, batchOptions))
      return run(sender.sendBatch(sender.accept(queue), entries, batchOptions))
    },
    consume: async (queue, consumeOptions, given) => {
      const checked = Options.consume("requeue.consume", queue, consumeOptions, given)
      const handler = given as MessageHandler<QueueDefinition.AnyBody> // Whatever else it answers is ignored.
      return (await start(Consumer.start(queue, checked, handler))).worker
    },
    consumeBatch: async (queue, consumeOptions, given) => {
      const checked = Options.consume("requeue.consumeBatch", queue, consumeOptions, given)
      const handler = given as BatchHandler<QueueDefinition.AnyBody> // Whatever else it answers is ignored.
      return (await start(Consumer.startBatch(queue, checked, handler))).worker
    },
    puller: async (queue, pullerOptions = {}) => {
      const { running, worker } = await start(Puller.make(queue, Options.puller(queue, pullerOptions)))
      return {
        ...worker,
        pull: async (pullOptions = {}) => {
          OptionNames.check("puller.pull", pullOptions, Puller.pullKinds, queue)
          return run(running.pull(pullOptions))
        }
      }
    },
    run: async (effect) => {
      OptionNames.orThrow(OptionNames.argument("requeue.run", "effect", effect, effectKind))
      return run(effect)
    },
    counts: async (queue, countsOptions = {}) => {
      OptionNames.check("requeue.counts", countsOptions, countsKinds, queue)
      const { timeout } = countsOptions
      if (timeout === undefined) return run(Effect.flatMap(Broker, ({ admin }) => admin.counts(queue)))
      return run(countWithin(queue, Delay.parse("timeout", timeout)))
    },
    health: () =>
      run(Health.check(session.workers)).catch((error: unknown) => {
        if (!(error instanceof Session.ConnectionClosed)) throw error
        const connection = {
          state: "down" as const,
          since: session.closedAt() ?? 0,
          because: "this program has closed it"
        }
        return { broker: session.broker, connection, consumers: [] }
      }),
    close: session.close,
    [Symbol.asyncDispose]: () => session.close()
  }
}

const rejected = (reason: unknown): Promise<never> => {
  const { promise, reject } = Promise.withResolvers<never>()
  reject(reason)
  return promise
}

/** Milliseconds that a broker has to start, such as in a container that starts with the program's. */
const defaultWait = 30_000

/** The broker, with the telemetry that is asked for. */
const layerOf = async <E>(
  broker: Adapters.Address | Layer.Layer<Broker, E>,
  { adapters, telemetry, waitForBroker = defaultWait }: ConnectOptions
): Promise<Layer.Layer<Broker, unknown>> => {
  const found: Layer.Layer<Broker, unknown> = isLayer(broker)
    ? broker
    : Adapters.layerOf(await resolve(broker, { adapters }))
  const layer = patient(found, Delay.toMillis(waitForBroker))
  return telemetry === undefined ? layer : Layer.merge(layer, Layer.succeed(Telemetry.Telemetry, telemetry))
}

/** Counts within so many milliseconds. That the broker did not answer by then is logged once. */
const counter = (): ((queue: string, millis: number) => Effect.Effect<Counts, BrokerError, Broker>) => {
  let isTold = false
  return (queue, millis) =>
    Effect.tapError(
      Effect.flatMap(Broker, (broker) => Counting.within(broker, queue, millis)),
      ({ message, reason }) => {
        if (isTold || reason !== "Timeout") return Effect.void
        isTold = true
        return Log.warning(`${message}; further times are not logged`)
      }
    )
}

const isLayer = <E>(broker: Adapters.Address | Layer.Layer<Broker, E>): broker is Layer.Layer<Broker, E> =>
  Layer.isLayer(broker)

/**
 * Says what a retry policy amounts to: its schedule, the most handler runs, the longest time, and all of it in one line.
 *
 * @example
 * ```ts
 * import { describe, exponential } from "@requeue/core/promise"
 *
 * const policy = { maxRetries: 3, backoff: exponential("1 second") }
 * describe(policy).text // => "3 retries: 1s, 2s, 4s; at most 4 handler runs over 7s"
 * ```
 */
export const describe = (policy: RetryPolicy.Options | RetryPolicy.RetryPolicy): RetryPolicy.Description =>
  RetryPolicy.describe(RetryPolicy.from(policy))
