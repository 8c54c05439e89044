/** Ctrl-C in work that consists of steps. */
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"

/**
 * Runs work that an interruption stops between two steps: the work gets a signal, and ends when that is aborted. So no
 * letter is left that was published and not removed. `onStop` gets the result of the work that was interrupted.
 */
export const gently = <A, E, R>(
  work: (signal: AbortSignal) => Effect.Effect<A, E, R>,
  onStop: (done: A) => Effect.Effect<void, unknown>
): Effect.Effect<A, E, R> =>
  Effect.suspend(() => {
    const stop = new AbortController()
    const end = (fiber: Fiber.Fiber<A, E>) =>
      Effect.suspend(() => {
        stop.abort()
        return Effect.flatMap(Fiber.join(fiber), onStop)
      })
    return Effect.flatMap(Effect.forkDetach(work(stop.signal)), (fiber) =>
      Effect.onInterrupt(Fiber.join(fiber), () => Effect.ignore(end(fiber)))
    )
  })
