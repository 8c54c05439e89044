/**
 * One run of a handler, whatever it returns: an Effect, a promise, or nothing.
 *
 * Plain JavaScript around the handler's own work: no fiber, promise or timer that the handler did not ask for.
 */
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type * as Fiber from "effect/Fiber"
import { HandlerTimeout } from "../Failure.ts"
import type { Context } from "../Handler.ts"
import type { Deadlines } from "../Deadlines.ts"

export type Outcome =
  | { readonly _tag: "Succeeded" }
  | { readonly _tag: "Failed"; readonly error: unknown }
  | { readonly _tag: "Interrupted" }

export interface Run {
  /** Ends the run now; its outcome is `Interrupted` unless it had ended already. */
  readonly interrupt: () => void
}

export interface Environment {
  readonly fork: (effect: Effect.Effect<unknown, unknown>) => Fiber.Fiber<unknown, unknown>
  /** How long a run may take. */
  readonly deadlines: Deadlines
}

const Succeeded: Outcome = { _tag: "Succeeded" }
const Interrupted: Outcome = { _tag: "Interrupted" }

/** Makes its AbortController only when the handler asks for the signal. */
class LazyContext implements Context {
  #controller: AbortController | undefined
  #aborted: { readonly reason: unknown } | undefined
  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController()
      if (this.#aborted !== undefined) this.#controller.abort(this.#aborted.reason)
    }
    return this.#controller.signal
  }
  abort(reason: unknown): void {
    this.#aborted = { reason }
    this.#controller?.abort(reason)
  }
}

const isThenable = (u: unknown): boolean =>
  typeof u === "object" && u !== null && typeof (u as { then?: unknown }).then === "function"

/** Starts the handler; `done` is called exactly once, perhaps before this returns. */
export const dispatch = (
  { deadlines, fork }: Environment,
  handler: (context: Context) => unknown,
  done: (outcome: Outcome) => void
): Run => {
  const context = new LazyContext()
  let ended = false
  let stopped: Outcome | undefined
  let stop: (why: Outcome) => void = () => {}

  const end = (outcome: Outcome): void => {
    if (ended) return
    ended = true
    deadlines.end(deadline)
    done(outcome)
  }

  const run = (): void => {
    let result: unknown
    let thenable: boolean
    try {
      result = handler(context)
      thenable = isThenable(result)
    } catch (error) {
      return end({ _tag: "Failed", error })
    }
    if (Effect.isEffect(result)) {
      const fiber = fork(result as Effect.Effect<unknown, unknown>)
      // The outcome waits for the fiber's own end, so that its finalizers run before a redelivery can start.
      stop = () => fiber.interruptUnsafe()
      fiber.addObserver((exit) => end(fromExit(exit, stopped)))
    } else if (thenable) {
      stop = end
      // A foreign thenable may throw: `resolve` makes a rejection of that, and is free for a promise.
      Promise.resolve(result).then(
        () => end(Succeeded),
        (error: unknown) => end({ _tag: "Failed", error })
      )
    } else end(Succeeded)
  }

  const interrupt = (why: Outcome): void => {
    if (ended || stopped !== undefined) return
    stopped = why
    context.abort(why._tag === "Failed" ? why.error : new Error("the consumer is shutting down"))
    stop(why)
  }

  const deadline = deadlines.start(() =>
    interrupt({ _tag: "Failed", error: new HandlerTimeout({ timeout: deadlines.timeout }) })
  )
  run()
  return { interrupt: () => interrupt(Interrupted) }
}

const fromExit = (exit: Exit.Exit<unknown, unknown>, stopped: Outcome | undefined): Outcome => {
  if (Exit.isSuccess(exit)) return Succeeded
  if (stopped !== undefined && Cause.hasInterruptsOnly(exit.cause)) return stopped
  return { _tag: "Failed", error: Cause.squash(exit.cause) }
}
