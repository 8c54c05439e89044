/**
 * Runs a handler once, whether it returns an Effect, a promise or nothing.
 *
 * It creates no fiber, promise or timer that the handler does not need.
 */
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type * as Fiber from "effect/Fiber"
import { HandlerTimeout } from "../../policy/Failure.ts"
import type { Context } from "../../message/Handler.ts"
import * as Thenable from "../../message/Thenable.ts"
import type { Deadline, Deadlines } from "../../runtime/Deadlines.ts"
import type * as Telemetry from "../../observe/Telemetry.ts"
import type { HandlerRuntime } from "../../runtime/HandlerRuntime.ts"

/** How a run of the handler ended. */
export type Outcome =
  | { readonly _tag: "Succeeded" }
  | {
      readonly _tag: "Failed"
      readonly error: unknown
      /** Whether it exceeded its time limit. A promise may still be running. Default: false. */
      readonly isLate?: boolean
    }
  | { readonly _tag: "Interrupted" }

/** Called with a task whose run has ended. */
export type Done<T> = (task: T, outcome: Outcome) => void

export interface Run {
  /** Ends the run now, with the outcome `Interrupted` unless it has already ended. */
  readonly interrupt: () => void
}

export interface Dependencies extends Pick<HandlerRuntime, "fork" | "within"> {
  /** Limits the time of each run. */
  readonly deadlines: Deadlines
}

const Succeeded: Outcome = { _tag: "Succeeded" }
const Interrupted: Outcome = { _tag: "Interrupted" }

/** Makes its AbortController only when the handler reads the signal. */
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

type Returned = Effect.Effect<unknown, unknown> | Promise<unknown> | undefined

/** Calls the handler for a task. */
type Call<T> = (task: T, context: Context) => unknown

/**
 * Calls the handler, and returns its Effect or promise; `undefined` for all else. It throws if inspecting the value throws.
 */
const calling = <T>(
  call: Call<T>,
  task: T,
  context: Context,
  watched: Telemetry.Run["within"] | undefined
): Returned => {
  const result = watched === undefined ? call(task, context) : watched(() => call(task, context))
  if (Effect.isEffect(result)) return result as Effect.Effect<unknown, unknown> // `fork` has the services that it needs.
  // A foreign thenable may throw: `resolve` turns that into a rejection, and costs nothing for a promise.
  if (Thenable.is(result)) return Promise.resolve(result)
  if (isError(result)) throw result
  return undefined
}

/** Whether a returned value is an Error, of any realm, as in Jest. Handlers return nothing as a rule, which costs one check. */
const isError = (value: unknown): boolean => {
  if (typeof value !== "object" || value === null) return false
  try {
    return value instanceof Error || Object.prototype.toString.call(value) === "[object Error]"
  } catch {
    return false // A proxy that throws.
  }
}

const isEffect = (value: unknown): value is Effect.Effect<unknown, unknown> => {
  try {
    return Effect.isEffect(value)
  } catch {
    return false
  }
}

/** A class, because a run then costs one object and not several closures. */
class HandlerRun<T> implements Run, Deadline {
  at = Number.POSITIVE_INFINITY
  place = -1
  readonly #context = new LazyContext()
  readonly #dependencies: Dependencies
  readonly #task: T
  readonly #done: Done<T>
  #ended = false
  #stopped: Outcome | undefined = undefined
  /** The handler's fiber, or its promise, which cannot be interrupted; `undefined` before there is one. */
  #waitsFor: Fiber.Fiber<unknown, unknown> | "a promise" | undefined = undefined

  constructor(dependencies: Dependencies, task: T, done: Done<T>) {
    this.#dependencies = dependencies
    this.#task = task
    this.#done = done
  }

  run(call: Call<T>, watched: Telemetry.Run["within"] | undefined): void {
    const { deadlines, within } = this.#dependencies
    deadlines.start(this)
    let returned: Returned
    try {
      returned = within(calling<T>, call, this.#task, this.#context, watched)
    } catch (error) {
      return this.#end({ _tag: "Failed", error })
    }
    if (returned === undefined) this.#end(Succeeded)
    else if (returned instanceof Promise) this.#await(returned)
    else this.#follow(returned)
  }

  #follow(effect: Effect.Effect<unknown, unknown>): void {
    const fiber = this.#dependencies.fork(effect)
    this.#waitsFor = fiber
    // Wait for the end of the fiber: its finalizers must run before a redelivery can start.
    fiber.addObserver((exit) => this.#end(fromExit(exit, this.#stopped)))
  }

  #await(promise: Promise<unknown>): void {
    this.#waitsFor = "a promise"
    promise.then(
      (value) => {
        // An Effect inside a promise must run: otherwise the message would be acked without its work.
        if (isEffect(value) && !this.#ended) this.#follow(value)
        else this.#end(isError(value) ? { _tag: "Failed", error: value } : Succeeded)
      },
      (error: unknown) => this.#end({ _tag: "Failed", error })
    )
  }

  interrupt(): void {
    this.#stop(Interrupted)
  }

  pass(): void {
    const error = new HandlerTimeout({ timeout: this.#dependencies.deadlines.timeout })
    this.#stop({ _tag: "Failed", error, isLate: true })
  }

  #stop(why: Outcome): void {
    if (this.#ended || this.#stopped !== undefined) return
    this.#stopped = why
    const reason = why._tag === "Failed" ? why.error : new Error("the consumer is shutting down")
    this.#dependencies.within(() => this.#context.abort(reason))
    if (this.#waitsFor === "a promise") this.#end(why)
    else this.#waitsFor?.interruptUnsafe()
  }

  #end(outcome: Outcome): void {
    if (this.#ended) return
    this.#ended = true
    this.#dependencies.deadlines.end(this)
    this.#done(this.#task, outcome)
  }
}

/** The handler of single messages, or of batches. */
type Handle = (given: any, context: Context) => unknown // A message or a batch, whose bodies the queue's codec has made.

/** The messages of one run. */
interface Task {
  readonly toMessage: () => unknown
  readonly toBatch: () => unknown
}

/**
 * Returns a function that runs the handler for a task: with its message if `single`, otherwise with its batch. It calls
 * `done` once, possibly before it returns.
 */
export const runner = (dependencies: Dependencies, handle: Handle, single: boolean) => {
  // `StackTrace` cuts traces at a function of this name.
  const call: Call<Task> = single
    ? function requeueCallsHandler(task, context) {
        return handle(task.toMessage(), context)
      }
    : function requeueCallsHandler(task, context) {
        return handle(task.toBatch(), context)
      }
  return <T extends Task>(task: T, done: Done<T>, watched?: Telemetry.Run["within"]): Run => {
    const run = new HandlerRun(dependencies, task, done)
    run.run(call, watched)
    return run
  }
}

const fromExit = (exit: Exit.Exit<unknown, unknown>, stopped: Outcome | undefined): Outcome => {
  if (Exit.isSuccess(exit)) return Succeeded
  if (stopped !== undefined && Cause.hasInterruptsOnly(exit.cause)) return stopped
  return { _tag: "Failed", error: Cause.squash(exit.cause) }
}
