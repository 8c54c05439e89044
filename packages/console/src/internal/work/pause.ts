/** Pauses in work that redacts many letters: a hook may be slow, and consumers of the process work meanwhile. */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"

/** Milliseconds of work before all others have their turn. */
const slice = 20

/** An effect for between two pieces of work: it gives all others their turn where it is time. */
export const make: Effect.Effect<Effect.Effect<void>> = Effect.map(Clock.Clock, (clock) => {
  const now = () => Number(clock.monotonicTimeNanosUnsafe()) / 1e6
  let yielded = now()
  const yielding = Effect.andThen(
    Effect.yieldNow,
    Effect.sync(() => (yielded = now()))
  )
  return Effect.suspend(() => (now() - yielded < slice ? Effect.void : yielding))
})
