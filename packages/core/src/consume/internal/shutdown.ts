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
import type { Runtime } from "./runtime.ts"

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

export interface Dependencies extends Pick<Runtime, "fork" | "timers"> {
  readonly queue: string
  readonly engine: Pick<Engine, "interrupt" | "stop" | "whenIdle">
  /** The scope of the subscription and of the timers. */
  readonly scope: Scope.Closeable
  /** How long a drain waits for handlers by default, in milliseconds. */
  readonly drainTimeout: number
  /** Called once, when the subscription has ended. */
  readonly onClosed: () => void
}

/** Returns how long settlements may take before the subscription closes, in milliseconds: as long as handlers, 1 s to 5 s. */
const settleGrace = (millis: number): number => Math.min(Math.max(millis, 1000), 5000)

const exitOf = (fatal: Fatal | undefined): Exit.Exit<void, DeadLetterBudgetExhausted> => {
  if (fatal === undefined) return Exit.void
  return fatal instanceof DeadLetterBudgetExhausted ? Exit.fail(fatal) : Exit.die(fatal)
}

export const make = (dependencies: Dependencies): Effect.Effect<Shutdown> =>
  Effect.gen(function* () {
    const { drainTimeout, engine, fork, onClosed, queue, scope, timers } = dependencies
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
        if (!(yield* waitUntilIdle(millis))) {
          const { handlers, messages } = engine.interrupt()
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
