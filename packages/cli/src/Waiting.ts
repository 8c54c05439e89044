/** Progress while a command waits for a broker. */
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import { Output } from "./Output.ts"

/** Milliseconds until progress is shown, and between two updates. */
const interval = 300

/** Runs work, and shows its progress unless it ends at once. */
export const telling =
  (text: () => string) =>
  <A, E, R>(work: Effect.Effect<A, E, R>): Effect.Effect<A, E, R | Output> =>
    Effect.flatMap(Output, ({ done, progress }) => {
      const shown = Effect.andThen(
        Effect.sleep(interval),
        Effect.suspend(() => progress(text()))
      )
      return Effect.acquireUseRelease(
        Effect.forkDetach(Effect.forever(shown)),
        () => work,
        (fiber) => Effect.andThen(Fiber.interrupt(fiber), done)
      )
    })
