/** A sign of life while a command waits for a broker. */
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import { Output } from "./Output.ts"

/** Milliseconds without an answer until people wonder, and between two texts. */
const interval = 300

/** Runs work, and shows as progress how far it is, unless it ends at once. */
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
