/** Puts an engine on a broker: checks what is asked, subscribes, and takes it down again in order. */
import * as Clock from "effect/Clock"
import * as Deferred from "effect/Deferred"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Option from "effect/Option"
import * as Random from "effect/Random"
import * as Scope from "effect/Scope"
import type { BatchPolicy } from "../../policy/BatchPolicy.ts"
import { Broker } from "../../port/Broker.ts"
import type { BrokerError } from "../../port/BrokerError.ts"
import type { ConfigurationError } from "../../options/ConfigurationError.ts"
import * as ConsumerOptions from "../ConsumerOptions.ts"
import * as ConsumerBackoff from "../../policy/ConsumerBackoff.ts"
import type { DeadLetterBudgetExhausted } from "../../policy/DeadLetterBudget.ts"
import * as DeadLetterRouting from "../../policy/DeadLetterRouting.ts"
import * as Delay from "../../message/Delay.ts"
import type { Hook } from "../../observe/Event.ts"
import type { QueueDefinition } from "../../message/QueueDefinition.ts"
import * as Health from "../../observe/Health.ts"
import * as RetryPolicy from "../../policy/RetryPolicy.ts"
import * as Telemetry from "../../observe/Telemetry.ts"
import * as Timers from "../../adapter-kit/Timers.ts"
import * as Deadlines from "../../adapter-kit/Deadlines.ts"
import type { Environment } from "./dispatch.ts"
import * as Engine from "./engine.ts"
import * as Reporter from "./reporter.ts"
import type { Runner } from "./workerPool.ts"

export interface Settings {
  readonly queue: QueueDefinition<any>
  readonly options: ConsumerOptions.Options
  readonly batch: BatchPolicy
  readonly single: boolean
  readonly concurrency: Engine.Options["concurrency"]
  readonly window: Engine.Options["window"]
  /** The largest window there can be. */
  readonly maxCredit: number
  readonly runner: (environment: Environment) => Runner
}

export interface Stats {
  /** Messages that wait for their batch. */
  readonly buffered: number
  /** Messages that a handler has, or that are being settled. */
  readonly inProgress: number
  /** Level of the consumer backoff; 0 when all is well. */
  readonly backoffLevel: number
  readonly state: "running" | "draining" | "stopped"
}

/** What a drain came to. */
export interface DrainReport {
  /** True when every handler ended in time. */
  readonly complete: boolean
  /** Messages that interrupted handlers had not decided on; they are in the queue again. */
  readonly interrupted: number
  /** Milliseconds. */
  readonly elapsed: number
}

export interface Consumer {
  readonly queue: string
  readonly stats: () => Stats
  /** How it is, for probes; `Health.check` adds what the broker knows. */
  readonly health: () => Health.ConsumerHealth
  /**
   * Stops the intake, gives back what no handler has begun, waits for the handlers until the deadline, interrupts and
   * gives back the rest, and closes. A later call has a deadline of its own; the
   * earlier of the two counts.
   *
   * @param timeout default: the consumer's `drainTimeout`
   */
  readonly drain: (timeout?: Delay.Input) => Effect.Effect<DrainReport>
  /** Ends when the consumer has stopped; fails when it stopped itself. */
  readonly done: Effect.Effect<void, DeadLetterBudgetExhausted>
}

/** What keeps a consumer from starting. */
export type StartError = ConfigurationError | BrokerError

export interface Assembled {
  readonly engine: Engine.Engine
  readonly consumer: Consumer
}

/** The second one's answer is the answer: it may be a promise that rejects. */
const both =
  (first: Hook, second: Hook | undefined): Hook =>
  (event) => {
    first(event)
    return second?.(event)
  }

/** Settlements of interrupted handlers get so long, in milliseconds, before the connection is closed. */
const settleGrace = 5000

export const make = <R>(settings: Settings): Effect.Effect<Assembled, StartError, Broker | Scope.Scope | R> =>
  Effect.gen(function* () {
    const { options, queue } = settings
    const broker = yield* Broker
    const telemetry = yield* Telemetry.Telemetry
    const clock = yield* Clock.Clock
    const random = yield* Random.Random
    const context = yield* Effect.context<R>()
    const fork = Effect.runForkWith(context) as Environment["fork"]
    const wallClock = () => clock.currentTimeMillisUnsafe()
    const resolved = ConsumerOptions.resolve(options, broker.capabilities.lease)
    yield* ConsumerOptions.verify(resolved, broker.capabilities, queue.name)

    const scope = yield* Scope.make()
    const timers = yield* Scope.provide(Timers.make, scope)
    const stopped = Deferred.makeUnsafe<void, DeadLetterBudgetExhausted>()
    let state: Stats["state"] = "running"
    let fatal: DeadLetterBudgetExhausted | undefined
    let complete = true
    let interrupted = 0

    const subscription = yield* broker
      .subscribe({
        queue: queue.name,
        retry: resolved.retry,
        deadLetterQueues: RetryPolicy.deadLetterQueues(resolved.retry, queue.name),
        maxCredit: settings.maxCredit,
        // Nothing is delivered before the engine gives its first credit.
        onDelivery: (delivery) => engine.onDelivery(delivery),
        onReconnect: (isGone) => engine.onReconnect(isGone)
      })
      .pipe(
        Scope.provide(scope),
        Effect.onError((cause) => Scope.close(scope, Exit.failCause(cause)))
      )

    const watch = telemetry?.consumer({
      broker: broker.capabilities.broker,
      queue: queue.name,
      now: () => Number(clock.currentTimeNanosUnsafe()) / 1e6,
      health: () => health(),
      connection: broker.connection,
      counts: broker.admin.counts(queue.name)
    })

    const engine = Engine.make({
      subscription,
      queue: queue.name,
      codec: queue.codec,
      retry: resolved.retry,
      retryDelay: resolved.retryDelay,
      batch: settings.batch,
      single: settings.single,
      concurrency: settings.concurrency,
      window: settings.window,
      backoff: options.consumerBackoff ?? ConsumerBackoff.off,
      budget: options.deadLetterBudget,
      capabilities: broker.capabilities,
      runner: settings.runner({ fork, deadlines: Deadlines.make(timers, resolved.handlerTimeout) }),
      timers,
      fork,
      yieldThen: (resume) => fork(Effect.yieldNow).addObserver(resume),
      random: () => random.nextDoubleUnsafe(),
      wallClock,
      reporter: Reporter.make(
        queue.name,
        watch === undefined ? options.onEvent : both(watch.onEvent, options.onEvent),
        (message, annotations) => {
          fork(Effect.annotateLogs(Effect.logWarning(message), annotations))
        },
        (error) => DeadLetterRouting.redacted(resolved.retry.deadLetter, error),
        wallClock
      ),
      watch,
      onFatal: (error) => {
        fatal = error
        fork(Effect.andThen(Effect.logError(error.message), drain()))
      }
    })

    const idle = Effect.callback<void>((resume) => engine.whenIdle(() => resume(Effect.void)))
    const waitIdle = (millis: number) => Effect.map(Effect.timeoutOption(idle, Duration.millis(millis)), Option.isSome)

    const close = yield* Effect.cached(
      Effect.suspend(() => {
        state = "stopped"
        const exit = fatal === undefined ? Exit.void : Exit.fail(fatal)
        return Effect.andThen(
          Scope.close(scope, Exit.void),
          Effect.sync(() => {
            watch?.close()
            Deferred.doneUnsafe(stopped, exit)
          })
        )
      })
    )

    const drain = (timeout: Delay.Input = resolved.drainTimeout): Effect.Effect<DrainReport> =>
      Effect.gen(function* () {
        const deadline = Delay.constrain("Consumer.drain: timeout", timeout, 0, Delay.max)
        const begun = timers.now()
        if (state === "running") state = "draining"
        engine.stopIntake()
        if (!(yield* waitIdle(deadline))) {
          const { handlers, messages } = engine.interrupt()
          complete &&= handlers === 0
          interrupted += messages
          yield* waitIdle(settleGrace)
        }
        yield* close
        return { complete, interrupted, elapsed: timers.now() - begun }
      })
    yield* Effect.addFinalizer(() => drain())

    yield* Effect.annotateLogs(Effect.logInfo("consuming"), {
      queue: queue.name,
      broker: broker.capabilities.broker,
      retry: RetryPolicy.describe(resolved.retry, resolved.retryDelay).text
    })

    const stats = (): Stats => {
      const { backoff, buffered, inProgress } = engine.stats()
      const backoffLevel = backoff.find(({ because }) => because === "handler")?.level ?? 0
      return { buffered, inProgress, backoffLevel, state }
    }
    const health = (): Health.ConsumerHealth => {
      const seen = engine.stats()
      const held = state === "running" ? Health.strictest(seen.backoff) : state
      return { queue: queue.name, state: held, ...seen, error: fatal?.message }
    }
    return { engine, consumer: { queue: queue.name, stats, health, drain, done: Deferred.await(stopped) } }
  })
