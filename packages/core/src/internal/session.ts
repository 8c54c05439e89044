/** A running broker for programs without Effect: runs effects on it, and knows the workers that must drain first. */
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import type * as LogLevel from "effect/LogLevel"
import * as ManagedRuntime from "effect/ManagedRuntime"
import * as References from "effect/References"
import * as Scope from "effect/Scope"
import type { Broker } from "../Broker.ts"
import type { Input } from "../Delay.ts"
import type { Consumer, DrainReport, Stats } from "./assembly.ts"

/** A running consumer. Leaving its `await using` block drains it. */
export interface Worker extends AsyncDisposable {
  readonly queue: string
  readonly stats: () => Stats
  /** Stops taking messages, lets handlers finish until the deadline, gives back the rest, and closes. */
  readonly drain: (timeout?: Input) => Promise<DrainReport>
  /** Resolves when the consumer has stopped; rejects when it stopped itself. */
  readonly done: () => Promise<void>
}

type Running = Pick<Consumer, "queue" | "stats" | "drain" | "done">

export interface Session {
  readonly run: <A, E>(effect: Effect.Effect<A, E, Broker>) => Promise<A>
  /** Starts something that drains by itself, in a scope of its own. */
  readonly start: <C extends Running, E>(
    effect: Effect.Effect<C, E, Broker | Scope.Scope>
  ) => Promise<{ readonly running: C; readonly worker: Worker }>
  readonly close: (timeout?: Input) => Promise<void>
}

const logging = (level: LogLevel.LogLevel) =>
  Layer.mergeAll(
    Logger.layer([Logger.consoleLogFmt]),
    Layer.succeed(References.LogToStderr, true),
    Layer.succeed(References.MinimumLogLevel, level)
  )

export const open = async <E>(broker: Layer.Layer<Broker, E>, level: LogLevel.LogLevel): Promise<Session> => {
  const runtime = ManagedRuntime.make(Layer.provideMerge(broker, logging(level)))
  const workers = new Set<Worker>()
  const run: Session["run"] = (effect) => runtime.runPromise(effect)
  // A broker that cannot be reached is found now and not by the first message.
  await runtime.context()

  const start: Session["start"] = async (effect) => {
    const scope = await run(Scope.make())
    const running = await run(
      effect.pipe(
        Scope.provide(scope),
        Effect.onError((cause) => Scope.close(scope, Exit.failCause(cause)))
      )
    )
    const drain = async (timeout?: Input) => {
      const report = await run(running.drain(timeout))
      await run(Scope.close(scope, Exit.void))
      workers.delete(worker)
      return report
    }
    const worker: Worker = {
      queue: running.queue,
      stats: running.stats,
      drain,
      done: () => run(running.done),
      [Symbol.asyncDispose]: async () => void (await drain())
    }
    workers.add(worker)
    return { running, worker }
  }

  const close = async (timeout?: Input): Promise<void> => {
    await Promise.all([...workers].map((worker) => worker.drain(timeout)))
    await runtime.dispose()
  }

  return { run, start, close }
}
