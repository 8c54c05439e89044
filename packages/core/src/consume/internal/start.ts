/** Starts a consumer: checks its options, subscribes, runs the engine, and drains when the scope closes. */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Scope from "effect/Scope"
import { Broker, type Service } from "../../port/Broker.ts"
import type { BrokerError } from "../../port/BrokerError.ts"
import type { ConfigurationError } from "../../options/ConfigurationError.ts"
import * as ConsumerOptions from "../ConsumerOptions.ts"
import * as ConsumerBackoff from "../../policy/ConsumerBackoff.ts"
import * as DeadLetterRouting from "../../policy/DeadLetterRouting.ts"
import type * as Delay from "../../message/Delay.ts"
import type { Hook } from "../../observe/Event.ts"
import type * as Health from "../../observe/Health.ts"
import type { Connection } from "../../port/Connection.ts"
import * as KnownQueues from "../../port/KnownQueues.ts"
import * as RetryPolicy from "../../policy/RetryPolicy.ts"
import * as Telemetry from "../../observe/Telemetry.ts"
import * as Contained from "../../observe/internal/contained.ts"
import * as Log from "../../port/Log.ts"
import * as AsyncContext from "../../runtime/AsyncContext.ts"
import * as Timers from "../../runtime/Timers.ts"
import * as Deadlines from "../../runtime/Deadlines.ts"
import type * as Dispatch from "./runHandler.ts"
import * as Engine from "./engine.ts"
import { strictest } from "./flow.ts"
import type { Decoder } from "./arrival.ts"
import * as Reporter from "../../observe/Reporter.ts"
import * as HandlerRuntime from "../../runtime/HandlerRuntime.ts"
import * as Shutdown from "./shutdown.ts"
import type { RunHandler } from "./runs.ts"

export interface Settings
  extends
    Pick<Engine.Options, "batch" | "single" | "concurrency" | "window" | "limiter">,
    Pick<Shutdown.Dependencies, "runs"> {
  readonly queue: { readonly name: string; readonly codec: Decoder }
  readonly options: ConsumerOptions.Options
  readonly runHandler: (dependencies: Dispatch.Dependencies) => RunHandler
}

/** The state of a consumer, and the number of its messages. */
export interface Stats {
  /** Messages that are being decoded or wait for their batch. */
  readonly buffered: number
  /** Messages that a handler has, or that are being settled. */
  readonly inProgress: number
  /** Messages that the consumer keeps because the broker refuses to settle them; see the event `Quarantined`. */
  readonly quarantined: number
  /** The level of the consumer backoff; 0 without one. */
  readonly backoffLevel: number
  readonly state: "running" | "draining" | "stopped"
}

/** A running consumer. When its scope closes, it drains, as {@link Consumer.drain} does. */
export interface Consumer {
  readonly queue: string
  readonly stats: () => Stats
  /**
   * Returns the consumer's health. For readiness and liveness probes, use `Health.check`, which adds the broker's
   * health.
   */
  readonly health: () => Health.ConsumerHealth
  /**
   * Stops consuming and starts no handlers, until {@link Consumer.resume}. Running handlers continue. Waiting messages stay
   * with the consumer, which extends their leases.
   */
  readonly pause: () => void
  /** Resumes consuming after {@link Consumer.pause}. */
  readonly resume: () => void
  /**
   * Stops consuming, returns unstarted messages to the queue, and waits for running handlers. After `timeout` it
   * interrupts them and returns their messages. Their acks and retries then get the same time, but 1 to 5 seconds, to
   * reach the broker. Finally the subscription closes, and the broker redelivers unsettled messages. Of several calls,
   * the earliest deadline applies.
   *
   * @param timeout how long to wait for handlers, 0 to 24 hours. Default: the consumer's `drainTimeout`
   */
  readonly drain: (timeout?: Delay.DurationInput) => Effect.Effect<Shutdown.DrainReport>
  /** An effect that ends when the consumer has stopped, and fails if an error has stopped it. */
  readonly done: Shutdown.Shutdown["done"]
}

/** The errors that prevent the start of a consumer. */
export type StartError = ConfigurationError | BrokerError

/** A consumer that receives no messages before the engine's first `refresh`. */
export interface Started {
  readonly engine: Engine.Engine
  readonly consumer: Consumer
}

const numbers = new WeakMap<Service, number>()

/** Returns the number of a new consumer on its broker, which identifies it in the log. */
const nextNumber = (broker: Service): number => {
  const number = (numbers.get(broker) ?? 0) + 1
  numbers.set(broker, number)
  return number
}

/** Starts the consumer of a queue. All its log lines name it, including those of the adapter and the handler. */
export const make = <R>(settings: Settings): Effect.Effect<Started, StartError, Broker | Scope.Scope | R> =>
  Effect.flatMap(Broker, (broker) =>
    Effect.annotateLogs(start<R>(settings, broker), {
      broker: broker.capabilities.broker,
      queue: settings.queue.name,
      consumer: nextNumber(broker)
    })
  )

const start = <R>(settings: Settings, broker: Service): Effect.Effect<Started, StartError, Broker | Scope.Scope | R> =>
  Effect.gen(function* () {
    const { options, queue, runHandler, runs, ...limits } = settings
    const { capabilities } = broker
    const telemetry = yield* Telemetry.Telemetry
    const clock = yield* Clock.Clock
    const resolved = ConsumerOptions.resolve(options, capabilities.lease)
    const { deadLetterBudget, drainTimeout, handlerTimeout, retryDelay, shareLimits } = resolved
    yield* ConsumerOptions.verify(resolved, capabilities, queue.name)

    const scope = yield* Scope.make()
    const timers = yield* Scope.provide(Timers.make, scope)
    const runtime = yield* HandlerRuntime.make<R>(timers, resolved.stackTraces)
    const { fork, wallClock, within } = runtime
    const { onEvent, retry } = boundTo(within, options.onEvent, resolved.retry)

    const reporter = Reporter.make({
      queue: queue.name,
      hook: telemetry === undefined ? onEvent : both((event) => watch?.onEvent(event), onEvent),
      info: (message, annotations) => void fork(Log.info(message, annotations)),
      warn: (message, annotations) => void fork(Log.warning(message, annotations)),
      redact: (failure) => DeadLetterRouting.redacted(retry.deadLetter, failure),
      timers,
      wallClock
    })
    const about: Telemetry.About = {
      broker: capabilities.broker,
      queue: queue.name,
      now: () => Number(clock.currentTimeNanosUnsafe()) / 1e6,
      health: () => status.health(),
      connection: broker.connection,
      counts: broker.admin.counts(queue.name)
    }
    const watch = Contained.watch(telemetry, about, within, (error) => reporter.threw("telemetry", error))

    const engine = Engine.make({
      ...limits,
      ...runtime,
      queue: queue.name,
      codec: queue.codec,
      retry,
      retryDelay,
      backoff: options.consumerBackoff ?? ConsumerBackoff.off,
      handlerTimeout,
      budget: deadLetterBudget,
      capabilities,
      runHandler: runHandler({ fork, within, deadlines: Deadlines.make(timers, handlerTimeout) }),
      reporter,
      watch,
      onFatal: (error) => shutdown.fail(error)
    })
    const forget = yield* know(broker, queue.name, retry)
    const onClosed = closing(forget, reporter, watch)
    const deadLetterQueues = RetryPolicy.deadLetterQueues(retry, queue.name)
    const { onDelivery, onReconnect, onRefused } = engine
    const maxBatchSize = limits.single ? 1 : limits.batch.maxBatchSize
    const wanted = { queue: queue.name, retry, deadLetterQueues, maxBatchSize, shareLimits }
    const subscription = yield* broker.subscribe({ ...wanted, onDelivery, onReconnect, onRefused }).pipe(
      Scope.provide(scope),
      Effect.onError((cause) => Effect.andThen(Scope.close(scope, Exit.failCause(cause)), Effect.sync(onClosed)))
    )
    engine.open(subscription)

    const shutdown = yield* Shutdown.make({ ...runtime, ...about, runs, engine, scope, drainTimeout, onClosed })
    const status = statusOf(queue.name, broker.connection, engine, shutdown)
    yield* Effect.addFinalizer(() => shutdown.drain())

    const { text } = RetryPolicy.describe(retry, retryDelay)
    yield* Log.info("consuming", { queue: queue.name, broker: capabilities.broker, retry: text })

    const { pause, resume } = engine
    const { done, drain } = shutdown
    return { engine, consumer: { queue: queue.name, ...status, pause, resume, drain, done } }
  })

const closing = (forget: () => void, reporter: Reporter.Reporter, watch: Telemetry.Watch | undefined) => (): void => {
  forget()
  reporter.close()
  watch?.close()
}

/** Records the dead-letter queues of a consumer, and warns if another consumer of the queue has different ones. */
const know = (broker: Service, queue: string, retry: RetryPolicy.RetryPolicy) =>
  Effect.gen(function* () {
    const { end, others } = KnownQueues.start(broker, queue, retry)
    if (others === undefined) return end
    const show = (names: ReadonlyArray<string>) => names.join(", ") || "none"
    yield* Log.warning(
      "two consumers of a queue have different dead-letter queues: the consumer that handles a message decides its dead-letter queue. Give both the same policy",
      { queue, deadLetterQueues: show(RetryPolicy.deadLetterQueues(retry, queue)), others: show(others) }
    )
    return end
  })

/** Returns the hook and the policy with functions that run in this async context. */
const boundTo = (within: AsyncContext.Within, onEvent: Hook | undefined, retry: RetryPolicy.RetryPolicy) => ({
  onEvent: AsyncContext.bind(within, onEvent),
  retry: {
    ...retry,
    classify: { ...retry.classify, with: AsyncContext.bind(within, retry.classify.with) },
    deadLetter: { ...retry.deadLetter, redact: AsyncContext.bind(within, retry.deadLetter.redact) }
  }
})

/** Returns a hook that calls both. It returns the result of the second one, which may be a promise that rejects. */
const both =
  (first: Hook, second: Hook | undefined): Hook =>
  (event) => {
    first(event)
    return second?.(event)
  }

/** Returns the trouble of a consumer whose broker is unreachable. */
const away = ({ because, since, state }: Connection): Health.ConsumerHealth["trouble"] =>
  state === "up" ? undefined : { since, because: because ?? "there is no connection to the broker" }

const statusOf = (
  queue: string,
  connection: () => Connection,
  engine: Engine.Engine,
  { error, state }: Shutdown.Shutdown
): Pick<Consumer, "stats" | "health"> => ({
  stats: () => {
    const { backoff, buffered, inProgress, quarantined } = engine.stats()
    const backoffLevel = backoff.find(({ because }) => because === "handler")?.level ?? 0
    return { buffered, inProgress, quarantined, backoffLevel, state: state() }
  },
  health: () => {
    const { isStalled, trouble, ...seen } = engine.stats()
    const because = trouble ? { since: trouble.since, because: trouble.error.message } : away(connection())
    const running = because === undefined ? (isStalled ? "stalled" : strictest(seen.backoff)) : "down"
    return {
      queue,
      state: state() === "running" ? running : state(),
      ...seen,
      trouble: because,
      error: error()?.message
    }
  }
})
