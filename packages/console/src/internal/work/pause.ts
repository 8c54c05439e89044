/** Pauses in long redactions: a hook may be slow, and consumers of the process must go on. */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"

/** Milliseconds of work between two pauses. */
const slice = 20

/** Makes an effect to run between two pieces of work. It yields to other work when a pause is due. */
export const make: Effect.Effect<Effect.Effect<void>> = Effect.map(Clock.Clock, (clock) => {
  const now = () => Number(clock.monotonicTimeNanosUnsafe()) / 1e6
  let yielded = now()
  const yielding = Effect.andThen(
    Effect.yieldNow,
    Effect.sync(() => (yielded = now()))
  )
  return Effect.suspend(() => (now() - yielded < slice ? Effect.void : yielding))
})
