/** A running broker for programs without Effect: runs effects on it, and tracks the workers to drain. */
import * as Cause from "effect/Cause"
import * as Context from "effect/Context"
import * as Data from "effect/Data"
import * as Clock from "effect/Clock"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import type * as LogLevel from "effect/LogLevel"
import * as ManagedRuntime from "effect/ManagedRuntime"
import * as References from "effect/References"
import * as Scope from "effect/Scope"
import * as Direct from "../../runtime/Direct.ts"
import { Broker } from "../../port/Broker.ts"
import * as Delay from "../../message/Delay.ts"
import type { ConsumerHealth } from "../../observe/Health.ts"
import * as OptionNames from "../../options/OptionNames.ts"
import type { Consumer, DrainReport, Stats } from "../../consume/Consumer.ts"
import type { Options } from "../../produce/internal/limits.ts"
import * as Sender from "../../produce/internal/producer.ts"
import * as Loggers from "../../observe/internal/loggers.ts"
import type { LogTarget } from "../../observe/LoggerLike.ts"

/** A running consumer. Leaving its `await using` block drains it. */
export interface Worker extends AsyncDisposable {
  readonly queue: string
  readonly stats: () => Stats
  /**
   * Returns the consumer's state. For readiness and liveness probes, use `Requeue.health`, which adds the broker's
   * state.
   */
  readonly health: () => ConsumerHealth
  /**
   * Takes no messages and starts no handlers until {@link Worker.resume}. Running handlers continue, and leases are
   * extended.
   */
  readonly pause: () => void
  /** Consumes again after {@link Worker.pause}. */
  readonly resume: () => void
  /** Stops consuming, waits for running handlers until the deadline, returns unfinished messages, and closes. */
  readonly drain: (timeout?: Delay.DurationInput) => Promise<DrainReport>
  /** Resolves when the consumer has stopped; rejects with an error if that error has stopped it. */
  readonly done: () => Promise<void>
}

/**
 * The error of a call before or during which the connection was closed, by `close` or by leaving its `await using`
 * block.
 */
export class ConnectionClosed extends Data.TaggedError("ConnectionClosed")<{ readonly broker: string }> {
  override get message() {
    return `the connection to the broker ${this.broker} was closed. Call connect again`
  }
}

type Running = Pick<Consumer, "queue" | "stats" | "health" | "pause" | "resume" | "drain" | "done">

export interface Session {
  readonly broker: string
  /** Rejects with `ConnectionClosed` if the session closes first. The effect's scope ends before the connections close. */
  readonly run: <A, E>(effect: Effect.Effect<A, E, Broker | Scope.Scope>) => Promise<A>
  /** Does the same, but throws what fails at once: callers in a synchronous transaction cannot await a rejection. */
  readonly runHere: <A, E>(effect: Effect.Effect<A, E, Broker | Scope.Scope>) => Promise<A>
  /** Starts a worker in its own scope; none starts once the session is closing. */
  readonly start: <C extends Running, E>(
    effect: Effect.Effect<C, E, Broker | Scope.Scope>
  ) => Promise<{ readonly running: C; readonly worker: Worker }>
  /** Shared by all queues, so no state is kept per queue. */
  readonly sender: Sender.Sender
  /** Workers that are not yet drained. */
  readonly workers: Iterable<Worker>
  /** When it was closed, in epoch milliseconds. */
  readonly closedAt: () => number | undefined
  /** A later call waits for the first one, and may shorten it. */
  readonly close: (timeout?: Delay.DurationInput) => Promise<void>
}

/** Where the lines of the log go, and the lowest level that is written. */
export interface Logging {
  readonly logger?: LogTarget | undefined
  readonly logLevel?: LogLevel.LogLevel | undefined
}

/** A logger of the program decides on levels itself. */
const logging = ({ logger, logLevel = typeof logger === "object" ? "Info" : "Warn" }: Logging) =>
  Layer.mergeAll(
    Layer.succeed(References.CurrentLoggers, Loggers.of(logger)),
    Layer.succeed(References.MinimumLogLevel, logLevel)
  )

const timeoutKind = Delay.kind(0, Delay.max)

const checkTimeout = (call: string, timeout: Delay.DurationInput | undefined, queue?: string): void => {
  if (timeout !== undefined) OptionNames.orThrow(OptionNames.argument(call, "timeout", timeout, timeoutKind, queue))
}

/** Makes a worker; `drained` closes it. */
const toWorker = (running: Running, run: Session["run"], drained: () => Promise<void>): Worker => {
  const done = run(running.done)
  // A rejection must not count as unhandled before anyone asks.
  done.catch(() => {})
  let ended: DrainReport | undefined
  const drain = async (timeout?: Delay.DurationInput) => {
    checkTimeout("worker.drain", timeout, running.queue)
    if (ended !== undefined) return ended
    const report = await run(running.drain(timeout))
    await drained()
    return (ended ??= report)
  }
  return {
    queue: running.queue,
    stats: running.stats,
    health: running.health,
    pause: running.pause,
    resume: running.resume,
    drain,
    done: () => done,
    [Symbol.asyncDispose]: async () => void (await drain())
  }
}

export const open = async <E>(layer: Layer.Layer<Broker, E>, logs: Logging, limits?: Options): Promise<Session> => {
  const runtime = ManagedRuntime.make(Layer.provideMerge(layer, logging(logs)))
  const { broker, sender } = await connected(runtime, limits)
  const workers = new Set<Worker>()
  const starting = new Set<Promise<unknown>>()
  const closes = Deferred.makeUnsafe<void>()
  /** The time of a `close` is over. */
  const timeIsUp = Deferred.makeUnsafe<void>()
  let closing: Promise<void> | undefined
  let closedAt: number | undefined

  const running = Scope.makeUnsafe("parallel")
  const held = Scope.makeUnsafe("parallel")
  const fork = Effect.runForkWith(Context.add(await runtime.context(), Scope.Scope, held))

  const forkIn = <A, E>(effect: Effect.Effect<A, E, Broker | Scope.Scope>) => Fiber.runIn(fork(effect), running)
  const runIn = runner(broker, forkIn)
  const run: Session["run"] = (effect) =>
    closedAt === undefined ? runIn(effect) : Promise.reject(new ConnectionClosed({ broker }))
  const runHere: Session["runHere"] = (effect) => {
    if (closedAt !== undefined) throw new ConnectionClosed({ broker })
    return Direct.toPromise(effect, forkIn, errorOf(broker))
  }

  // An unreachable broker must not keep the session open.
  const closed = Effect.andThen(Deferred.await(closes), Effect.fail(new ConnectionClosed({ broker })))
  const begin = starter(run, workers, closed)

  const start: Session["start"] = async (effect) => {
    if (closing !== undefined) throw new ConnectionClosed({ broker })
    const started = begin(effect)
    starting.add(started)
    try {
      return await started
    } finally {
      starting.delete(started)
    }
  }

  const drainAll = async (timeout: Delay.DurationInput | undefined): Promise<void> => {
    await Promise.allSettled(starting)
    await Promise.all([...workers].map((worker) => worker.drain(timeout)))
  }

  const shutDown = async (timeout: Delay.DurationInput | undefined): Promise<void> => {
    try {
      await drainAll(timeout)
    } finally {
      closedAt = Effect.runSync(Clock.currentTimeMillis)
      // Each send ends within its publish timeout.
      await Effect.runPromise(Effect.raceFirst(sender.ended, Deferred.await(timeIsUp)))
      sender.close()
      await Effect.runPromise(Effect.andThen(Scope.close(running, Exit.void), Scope.close(held, Exit.void)))
      await runtime.dispose()
    }
  }

  const close: Session["close"] = async (timeout) => {
    checkTimeout("requeue.close", timeout)
    if (timeout !== undefined) {
      const passed = Effect.andThen(Effect.sleep(Delay.toMillis(timeout)), Deferred.succeed(timeIsUp, undefined))
      Fiber.runIn(fork(passed), running)
    }
    Deferred.doneUnsafe(closes, Exit.void)
    if (closing === undefined) closing = shutDown(timeout)
    else if (closedAt === undefined) await drainAll(timeout)
    await closing
  }

  return { broker, run, runHere, start, sender, workers, closedAt: () => closedAt, close }
}

/** Runs effects as the runtime would, for a third of the garbage, and without a fiber where possible, such as for sends. */
const runner = (
  broker: string,
  fork: <A, E>(effect: Effect.Effect<A, E, Broker | Scope.Scope>) => Fiber.Fiber<A, E>
): Session["run"] => {
  const toError = errorOf(broker)
  return <A, E>(effect: Effect.Effect<A, E, Broker | Scope.Scope>) => {
    const { promise, reject, resolve } = Promise.withResolvers<A>()
    Direct.run<A, E, Broker | Scope.Scope>(effect, fork, (exit) => {
      if (Exit.isSuccess(exit)) resolve(exit.value)
      else reject(toError(exit.cause))
    })
    return promise
  }
}

/** Only the end of the connection interrupts effects here. */
const errorOf = (broker: string) => (cause: Cause.Cause<unknown>) =>
  Cause.hasInterruptsOnly(cause) ? new ConnectionClosed({ broker }) : Cause.squash(cause)

/** Starts a worker, unless `closed` fails first. It is among the workers until it is drained. */
const starter =
  (run: Session["run"], workers: Set<Worker>, closed: Effect.Effect<never, ConnectionClosed>): Session["start"] =>
  async (effect) => {
    const scope = await run(Scope.make())
    const running = await run(
      Effect.raceFirst(effect, closed).pipe(
        Scope.provide(scope),
        Effect.onError((cause) => Scope.close(scope, Exit.failCause(cause)))
      )
    )
    const worker = toWorker(running, run, async () => {
      await run(Scope.close(scope, Exit.void))
      workers.delete(worker)
    })
    workers.add(worker)
    return { running, worker }
  }

/** Finds an unreachable broker now, not with the first message; then closes what was opened. */
const connected = async <E>(
  runtime: ManagedRuntime.ManagedRuntime<Broker, E>,
  limits: Options | undefined
): Promise<Pick<Session, "broker" | "sender">> => {
  try {
    const { capabilities } = await runtime.runPromise(Broker)
    return { broker: capabilities.broker, sender: await runtime.runPromise(Sender.open(limits)) }
  } catch (error) {
    await runtime.dispose()
    throw error
  }
}
