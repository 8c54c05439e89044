/** Ctrl-C, once in work that consists of steps, and a second time. */
import * as Console from "effect/Console"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import { Output } from "./Output.ts"

/** Aborted by a second Ctrl-C: the program ends at once, whatever is under way. */
export const Abandonment = Context.Reference<AbortController>("@requeue/cli/Abandonment", {
  defaultValue: () => new AbortController()
})

/** Runs an effect; should it be abandoned meanwhile, `lastWords` are said, which wait for nothing. */
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
 * Runs work that an interruption stops between two steps: the work gets a signal, and ends when that is aborted. So no
 * letter is left that was published and not removed. `onStop` gets the result of the work that was interrupted; of work that
 * fails then, the error is told.
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

/** The way on after an interruption, where what was done stays done. */
export const goOn = "To go on, give the same command again"

/** Milliseconds for the end of connections, once an interrupted command has told what it has done. */
const endTimeout = 10_000

/** Tells what an interrupted command has done until then: the value with `--json`, else the text on standard error. */
export const tell = (value: () => object, text: () => string): Effect.Effect<void, never, Output> =>
  Effect.gen(function* () {
    const { done, json, result } = yield* Output
    const abandonment = yield* Abandonment
    yield* done
    yield* json
      ? Effect.ignore(result({ ...value(), interrupted: true }, text))
      : Console.error(`requeue: interrupted. ${text()}`)
    // Its timer does not keep the process.
    AbortSignal.timeout(endTimeout).addEventListener("abort", () => abandonment.abort())
  })
