/**
 * The Promise API: Requeue for programs without Effect.
 *
 * `connect` returns a {@link Requeue}, which sends, consumes and pulls messages. Its promises reject with the typed
 * errors of Requeue's modules.
 */
import * as Effect from "effect/Effect"
import type * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"
import type * as Adapters from "./Adapters.ts"
import { named } from "./Constructors.ts"
import { Broker, type Counts } from "../port/Broker.ts"
import type { BrokerError } from "../port/BrokerError.ts"
import * as Log from "../port/Log.ts"
import * as Consumer from "../consume/Consumer.ts"
import { bare } from "../consume/ConsumerOptions.ts"
import * as Delay from "../message/Delay.ts"
import * as Health from "../observe/Health.ts"
import * as Counting from "../port/Counting.ts"
import type { Batch, BatchHandler, Context, MessageHandler, Received } from "../message/Handler.ts"
import * as Options from "./internal/options.ts"
import type { ConnectOptions, ConsumeOptions, PullerOptions } from "./internal/options.ts"
import { layerOf } from "./internal/layerOf.ts"
import * as Session from "./internal/session.ts"
import type { Worker } from "./internal/session.ts"
import * as Checks from "../produce/internal/checks.ts"
import * as OptionNames from "../options/OptionNames.ts"
import * as Runtime from "../options/runtime.ts"
import type * as Producer from "../produce/Producer.ts"
import * as Puller from "../consume/Puller.ts"
import * as QueueDefinition from "../message/QueueDefinition.ts"
import * as Relay from "../store/Relay.ts"
import * as RetryPolicy from "../policy/RetryPolicy.ts"

export type { ConnectOptions, ConsumeOptions, Policies, PullerOptions } from "./internal/options.ts"
export { ConnectionClosed, type Worker } from "./internal/session.ts"

/** A consumer without a handler: you pull its batches. Leaving its `await using` block drains it. */
export interface PullWorker<A> extends Worker {
  /**
   * Resolves with the next batch; with `undefined` if no message arrives within `wait` (default 5 s). Rejects with
   * `PullerDrained` after the puller was drained.
   */
  readonly pull: (options?: Puller.PullOptions) => Promise<Puller.PulledBatch<A> | undefined>
}

/**
 * The results that a handler may return. An Effect that needs services is not allowed: provide them with
 * `Effect.provide`, or use `Consumer.start`.
 */
export type Runnable<T> = [Needs<Awaited<T>>] extends [never]
  ? unknown
  : // `any` may be any Effect.
    unknown extends Needs<Awaited<T>>
    ? unknown
    : { readonly "this Effect needs services": Needs<Awaited<T>> }

type Needs<T> = T extends Effect.Effect<unknown, unknown, infer R> ? R : never

/** The options of `counts`. */
export interface CountsOptions {
  /**
   * Longest wait for the broker's answer, 1 ms to 24 hours; a number counts milliseconds. Then `counts` rejects with a
   * `BrokerError` of reason `Timeout`, and logs the first such error. Default: the adapter's own limit.
   */
  readonly timeout?: Delay.DurationInput | undefined
}

const effectKind = { expected: "an Effect", holds: Effect.isEffect }

const countsKinds: OptionNames.Of<CountsOptions> = { timeout: Delay.kind(1, Delay.max) }

/** Sends messages in a transaction. */
export type Transactional = Pick<Requeue, "send" | "sendBatch">

/**
 * A connection to a broker. Leaving its `await using` block closes it.
 *
 * If an option is unknown, of the wrong kind or out of range, every function rejects with RangeError before it does
 * anything.
 */
export interface Requeue extends AsyncDisposable {
  /** The broker's name, for example `memory`. */
  readonly broker: string
  /** Sends a message, and resolves with its id once the broker has confirmed it. */
  readonly send: <A = QueueDefinition.AnyBody>(
    queue: QueueDefinition.Input<unknown, A>,
    body: NoInfer<A>,
    options?: Producer.SendOptions
  ) => Promise<string>
  /** Sends messages, and resolves with their ids once the broker has confirmed all. */
  readonly sendBatch: <A = QueueDefinition.AnyBody>(
    queue: QueueDefinition.Input<unknown, A>,
    entries: ReadonlyArray<Producer.BatchEntry<NoInfer<A>>>,
    options?: Producer.BatchOptions
  ) => Promise<ReadonlyArray<string>>
  /**
   * Sends in a transaction of the database that has the queue: the messages exist if and only if the transaction is committed.
   * Its calls resolve before the commit; await them in the transaction. In a synchronous transaction they act before they
   * return, and throw instead of rejecting; the queue's codec must then be synchronous.
   *
   * @throws BrokerError when the broker has no transactions. The calls also reject with it when the value is no open transaction
   *
   * @example
   * ```ts
   * import { MemoryTransaction } from "@requeue/adapter-memory"
   * import { connect } from "@requeue/core/promise"
   *
   * await using requeue = await connect("memory:")
   * await requeue.consume("payments", {}, (message) =>
   *   MemoryTransaction.run(async (transaction) => {
   *     await message.within(transaction)
   *     await requeue.within(transaction).send("receipts", { of: message.id })
   *   })
   * )
   * ```
   */
  readonly within: (transaction: unknown) => Transactional
  /**
   * Starts a consumer whose handler gets one message at a time. If the queue is from a config file, the file's options
   * apply, except those that you pass here.
   */
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
  /** Makes a puller, from which your code takes a batch when it has capacity, and settles it later. */
  readonly puller: <A = QueueDefinition.AnyBody>(
    queue: QueueDefinition.Input<A, never>,
    options?: PullerOptions
  ) => Promise<PullWorker<A>>
  /**
   * Starts a relay, which publishes the messages in the outbox of the connection's `store`. At least one process must run one; several
   * share the work. The options are those of a consumer, see `Relay.start` for the defaults.
   *
   * @example
   * ```ts
   * import { MemoryTransaction } from "@requeue/adapter-memory"
   * import { connect } from "@requeue/core/promise"
   *
   * await using requeue = await connect("memory:", { store: "memory:" })
   * await MemoryTransaction.run((transaction) => requeue.within(transaction).send("receipts", { of: "p1" }))
   * await using relay = await requeue.relay()
   * ```
   */
  readonly relay: (options?: ConsumeOptions) => Promise<Worker>
  /** Runs an Effect on this connection, for modules without promises. The Effect's scope closes with the connection. */
  readonly run: <A, E>(effect: Effect.Effect<A, E, Broker | Scope.Scope>) => Promise<A>
  /** Counts the messages of a queue. A count that the broker does not have is `undefined`. */
  readonly counts: (queue: string, options?: CountsOptions) => Promise<Counts>
  /**
   * Returns the state of the connection, consumers and pullers as JSON data, within about a second. `isReady` and
   * `isLive` evaluate it.
   */
  readonly health: () => Promise<Health.Health>
  /**
   * Drains every consumer within the timeout (default: the consumer's `drainTimeout`), waits at most `publishTimeout`
   * for sends in flight, and closes the connection.
   *
   * Unanswered sends then reject with a `BrokerError`: reason `ConnectionLost` if the broker may have the message,
   * `ConnectionFailed` if it was not sent. All other calls, running or later, reject with `ConnectionClosed`. A second
   * `close` waits for the first one, and can shorten it by a shorter timeout.
   */
  readonly close: (timeout?: Delay.DurationInput) => Promise<void>
}

/**
 * Connects to a broker.
 *
 * Rejects with RangeError for an option in `options` that is unknown or of the wrong kind, with `ConfigurationError`
 * for an invalid URL, an unknown option of the adapter, or an adapter that is not installed, and with `BrokerError`
 * when the broker cannot be reached within `options.waitForBroker`.
 *
 * @param broker a URL such as `memory:`, an object with a `url` and the adapter's options, or the Layer of an adapter.
 * Requeue uses the object's `adapter`, else one of `options.adapters`, else the package of the URL's scheme
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
  const { maxPending, publishTimeout } = options
  const session = await Session.open(await layerOf(broker, options), options, { maxPending, publishTimeout })
  const { run, sender, start } = session
  const countWithin = counter()

  return {
    broker: session.broker,
    // Options are checked synchronously, so the error's stack leads to the call. Not `async`: a send has one promise.
    send: (queue, body, sendOptions) => {
      try {
        OptionNames.orThrow(Checks.send("requeue.send", queue, sendOptions))
        if (sendOptions?.delay !== undefined) Delay.parse("send.delay", sendOptions.delay)
        return run(sender.send(sender.accept("requeue.send", queue), body, sendOptions))
      } catch (error) {
        return rejected(error)
      }
    },
    sendBatch: async (queue, entries, batchOptions) => {
      OptionNames.orThrow(Checks.sendBatch("requeue.sendBatch", queue, entries, batchOptions))
      return run(sender.sendBatch(sender.accept("requeue.sendBatch", queue), entries, batchOptions))
    },
    within: (transaction) => transactional(session, transaction),
    consume: async (queue, consumeOptions, given) => {
      const call = "requeue.consume"
      const checked = Options.consume(call, queue, consumeOptions, given)
      const handler = given as MessageHandler<QueueDefinition.AnyBody> // Any other result is ignored.
      return (await start(Consumer.start(bare(QueueDefinition.from(queue, call)), checked, handler))).worker
    },
    consumeBatch: async (queue, consumeOptions, given) => {
      const call = "requeue.consumeBatch"
      const checked = Options.consume(call, queue, consumeOptions, given)
      const handler = given as BatchHandler<QueueDefinition.AnyBody> // Any other result is ignored.
      return (await start(Consumer.startBatch(bare(QueueDefinition.from(queue, call)), checked, handler))).worker
    },
    puller: async (queue, pullerOptions = {}) => {
      const checked = Options.puller(queue, pullerOptions)
      const definition = bare(QueueDefinition.from(queue, "requeue.puller"))
      const { running, worker } = await start(Puller.make(definition, checked))
      return {
        ...worker,
        pull: async (pullOptions = {}) => {
          OptionNames.check("puller.pull", pullOptions, Puller.pullKinds, queue)
          return run(running.pull(pullOptions))
        }
      }
    },
    relay: async (relayOptions = {}) => (await start(Relay.start(Options.relay(relayOptions, options)))).worker,
    run: async (effect) => {
      OptionNames.orThrow(OptionNames.argument("requeue.run", "effect", effect, effectKind))
      return run(effect)
    },
    counts: async (queue, countsOptions = {}) => {
      OptionNames.check("requeue.counts", countsOptions, countsKinds, queue)
      const { name } = QueueDefinition.from(queue, "requeue.counts")
      const { timeout } = countsOptions
      if (timeout === undefined) return run(Effect.flatMap(Broker, ({ admin }) => admin.counts(name)))
      return run(countWithin(name, Delay.parse("timeout", timeout)))
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

const transactional = ({ runHere, sender }: Session.Session, transaction: unknown): Transactional => {
  const { send, sendBatch } = sender.within(transaction)
  return {
    send: (queue, body, sendOptions) => {
      OptionNames.orThrow(Checks.send("requeue.send", queue, sendOptions))
      return runHere(send(sender.accept("requeue.send", queue), body, sendOptions))
    },
    sendBatch: (queue, entries, batchOptions) => {
      OptionNames.orThrow(Checks.sendBatch("requeue.sendBatch", queue, entries, batchOptions))
      return runHere(sendBatch(sender.accept("requeue.sendBatch", queue), entries, batchOptions))
    }
  }
}

const rejected = (reason: unknown): Promise<never> => {
  const { promise, reject } = Promise.withResolvers<never>()
  reject(reason)
  return promise
}

/** Counts within `millis` milliseconds, and logs the first timeout. */
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

/**
 * Describes a retry policy: its schedule, the most handler runs, the longest time, and a summary in one line.
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
  RetryPolicy.describe(named("describe", () => RetryPolicy.from(policy)))
