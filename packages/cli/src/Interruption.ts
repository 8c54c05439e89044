/** Interruptions: the first Ctrl-C ends work between two steps, the second ends the program. */
import * as Console from "effect/Console"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as ExitCode from "./ExitCode.ts"
import { Output } from "./Output.ts"

/** A signal that a second Ctrl-C aborts: the program then ends at once. */
export const Abandonment = Context.Reference<AbortController>("@requeue/cli/Abandonment", {
  defaultValue: () => new AbortController()
})

/** The exit code of an interrupted program. */
export const Ending = Context.Reference<{ code: number }>("@requeue/cli/Ending", {
  defaultValue: () => ({ code: ExitCode.interrupted })
})

/** Makes the interruption count as success, for a command that works until it is interrupted. */
export const regular: Effect.Effect<void> = Effect.map(Ending, (ending) => void (ending.code = ExitCode.ok))

/** Runs an effect. If the program is abandoned meanwhile, calls `lastWords`, which must not wait. */
export const withLastWords =
  (lastWords: () => void) =>
  <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
    Effect.gen(function* () {
      const { signal } = yield* Abandonment
      if (signal.aborted) lastWords()
      return yield* Effect.acquireUseRelease(
        Effect.sync(() => signal.addEventListener("abort", lastWords, { once: true })),
        () => effect,
        () => Effect.sync(() => signal.removeEventListener("abort", lastWords))
      )
    })

/**
 * Runs work that Ctrl-C stops between two steps: Ctrl-C aborts a signal, and the work ends at its next step. So no
 * published letter is left unremoved. `onStop` gets the result of interrupted work. If the work fails after the signal, its
 * error is printed.
 */
export const gently = <A, E, R>(
  work: (signal: AbortSignal) => Effect.Effect<A, E, R>,
  onStop: (done: A) => Effect.Effect<void, never, Output>
): Effect.Effect<A, E, R | Output> =>
  Effect.suspend(() => {
    const stop = new AbortController()
    const end = (fiber: Fiber.Fiber<A, E>) =>
      Effect.suspend(() => {
        stop.abort()
        return Effect.flatMap(Fiber.join(fiber), onStop)
      })
    const tellError = (error: E) =>
      Effect.flatMap(Output, ({ note }) => note(error instanceof Error ? error.message : String(error)))
    return Effect.flatMap(Effect.forkDetach(work(stop.signal)), (fiber) =>
      Effect.onInterrupt(Fiber.join(fiber), () => end(fiber).pipe(Effect.catch(tellError)))
    )
  })

/** Advises how to go on after an interruption. It requires that finished work stays done. */
export const goOn = "To go on, run the same command again"

/** Milliseconds for closing connections, after an interrupted command has printed its report. */
const endTimeout = 10_000

/** Prints the report of an interrupted command: the value with `--json`, else the text on standard error. */
export const tell = (value: () => object, text: () => string): Effect.Effect<void, never, Output> =>
  Effect.gen(function* () {
    const { done, json, result } = yield* Output
    const abandonment = yield* Abandonment
    yield* done
    yield* json
      ? Effect.ignore(result({ ...value(), interrupted: true }, text))
      : Console.error(`requeue: interrupted. ${text()}`)
    // Its timer does not keep the process alive.
    AbortSignal.timeout(endTimeout).addEventListener("abort", () => abandonment.abort())
  })
