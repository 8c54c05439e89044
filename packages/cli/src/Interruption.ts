/** What Ctrl-C does to work that consists of steps. */
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"

/**
 * The work, which an interruption stops between two steps by the signal that it gets: no letter is left published and not
 * removed. `onStop` is told what was done by then.
 */
export const gently = <A, E, R>(
  work: (signal: AbortSignal) => Effect.Effect<A, E, R>,
  onStop: (done: A) => Effect.Effect<void>
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
