/** Stops a consumer in order: no more messages, then the end of its handlers, then the end of its subscription. */
import * as Deferred from "effect/Deferred"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Option from "effect/Option"
import * as Scope from "effect/Scope"
import * as Log from "../../port/Log.ts"
import * as Delay from "../../message/Delay.ts"
import { DeadLetterBudgetExhausted } from "../../policy/DeadLetterBudget.ts"
import type { Engine, Fatal } from "./engine.ts"
import type { HandlerRuntime } from "../../runtime/HandlerRuntime.ts"

/** The result of a drain. */
export interface DrainReport {
  /** Whether every handler ended in time. */
  readonly complete: boolean
  /** Number of messages that interrupted handlers left without a verdict. They were returned to the queue. */
  readonly interrupted: number
  /** How long the drain took, in milliseconds. */
  readonly elapsed: number
}

export interface Shutdown {
  readonly state: () => "running" | "draining" | "stopped"
  /** Returns the error that has stopped the consumer. */
  readonly error: () => Fatal | undefined
  /** Drains. `timeout`: how long to wait for handlers. Default: `drainTimeout`. */
  readonly drain: (timeout?: Delay.DurationInput) => Effect.Effect<DrainReport>
  /** Drains because of an error, with which {@link done} then fails. */
  readonly fail: (error: Fatal) => void
  /** Ends when the consumer has stopped; fails if an error has stopped it. A wrong handler is a defect. */
  readonly done: Effect.Effect<void, DeadLetterBudgetExhausted>
}

/** The holder of messages in progress. */
type Runs = "handler" | "pulled batch"

export interface Dependencies extends Pick<HandlerRuntime, "fork" | "timers"> {
  readonly queue: string
  readonly engine: Pick<Engine, "interrupt" | "running" | "stats" | "stop" | "whenIdle">
  /** The name of a run in the log. */
  readonly runs: Runs
  /** The scope of the subscription and of the timers. */
  readonly scope: Scope.Closeable
  /** How long a drain waits for handlers by default, in milliseconds. */
  readonly drainTimeout: number
  /** Called once, when the subscription has ended. */
  readonly onClosed: () => void
}

/** Returns how long settlements may take before the subscription closes, in milliseconds: as long as handlers, 1 s to 5 s. */
const settleGrace = (millis: number): number => Math.min(Math.max(millis, 1000), 5000)

/** Milliseconds that a drain waits before it logs what it waits for. */
const quiet = 1000

const counted = (count: number, what: string): string => {
  if (count === 1) return `1 ${what}`
  return `${count} ${what}${what.endsWith("h") ? "es" : "s"}`
}

const waiting = (runs: Runs, count: number, inProgress: number, left: string): string => {
  if (count === 0) return `closing: waiting up to ${left} for the broker to settle ${counted(inProgress, "message")}`
  const line = `closing: waiting up to ${left} for ${counted(count, runs)}`
  return runs === "handler"
    ? `${line}. A handler must not await close or drain: that waits for the handler itself`
    : `${line}. Call settle, fail or release on each`
}

const cut = (runs: Runs, count: number, timeout: string): string =>
  runs === "handler"
    ? `interrupted ${counted(count, runs)} after the drain timeout of ${timeout}: messages without a verdict return to the queue. Pass the handler's signal to what the handler awaits, or raise drainTimeout`
    : `ended ${counted(count, runs)} after the drain timeout of ${timeout}: messages without a verdict return to the queue. Settle pulled batches sooner, or raise drainTimeout`

const exitOf = (fatal: Fatal | undefined): Exit.Exit<void, DeadLetterBudgetExhausted> => {
  if (fatal === undefined) return Exit.void
  return fatal instanceof DeadLetterBudgetExhausted ? Exit.fail(fatal) : Exit.die(fatal)
}

export const make = (dependencies: Dependencies): Effect.Effect<Shutdown> =>
  Effect.gen(function* () {
    const { drainTimeout, engine, fork, onClosed, queue, runs, scope, timers } = dependencies
    const stopped = Deferred.makeUnsafe<void, DeadLetterBudgetExhausted>()
    let state: ReturnType<Shutdown["state"]> = "running"
    let fatal: Fatal | undefined
    let complete = true
    let interrupted = 0

    const idle = Effect.callback<void>((resume) => engine.whenIdle(() => resume(Effect.void)))
    // After another drain has closed the subscription, nothing more is settled.
    const done = Effect.raceFirst(idle, Effect.exit(Deferred.await(stopped)))
    const waitUntilIdle = (millis: number) =>
      Effect.map(Effect.timeoutOption(done, Duration.millis(millis)), Option.isSome)

    /** Waits, and logs after a second what it waits for. */
    const waitForHandlers = (millis: number) =>
      Effect.gen(function* () {
        if (yield* waitUntilIdle(Math.min(millis, quiet))) return true
        if (millis <= quiet) return false
        const [count, { inProgress }] = [engine.running(), engine.stats()]
        const line = waiting(runs, count, inProgress, Delay.format(millis - quiet))
        yield* Log.warning(line, { queue, running: count, inProgress })
        return yield* waitUntilIdle(millis - quiet)
      })

    const close = yield* Effect.cached(
      Effect.suspend(() => {
        state = "stopped"
        const exit = exitOf(fatal)
        return Effect.andThen(
          Scope.close(scope, Exit.void),
          Effect.sync(() => {
            onClosed()
            Deferred.doneUnsafe(stopped, exit)
          })
        )
      })
    )

    const drain: Shutdown["drain"] = (timeout = drainTimeout) =>
      Effect.gen(function* () {
        const millis = Delay.constrain("Consumer.drain: timeout", timeout, 0, Delay.max)
        const begun = timers.now()
        if (state === "running") state = "draining"
        engine.stop()
        if (!(yield* waitForHandlers(millis))) {
          const { handlers, messages } = engine.interrupt()
          if (handlers > 0) yield* Log.warning(cut(runs, handlers, Delay.format(millis)), { queue, messages })
          complete &&= handlers === 0
          interrupted += messages
          yield* waitUntilIdle(settleGrace(millis))
        }
        yield* close
        return { complete, interrupted, elapsed: timers.now() - begun }
      })

    return {
      state: () => state,
      error: () => fatal,
      drain,
      fail: (error) => {
        fatal = error
        fork(Effect.andThen(Log.error(error.message, { queue }), drain()))
      },
      done: Deferred.await(stopped)
    }
  })
