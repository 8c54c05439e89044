/** The surroundings of a simulated server: time and chance. */
import { Timers } from "@requeue/core/port"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Random from "effect/Random"
import type * as Scope from "effect/Scope"

/** The surroundings of a simulated server. */
export interface Host {
  /** Milliseconds since the epoch, by the server's clock. */
  readonly now: () => number
  /** Runs something after this many milliseconds. Returns a function that cancels it. */
  readonly after: (delay: number, run: () => void) => () => void
  /** A number from 0 to below 1. `place` names its use: surroundings may draw the numbers of each use on their own. */
  readonly random: (place: string) => number
}

/** Surroundings by Effect's Clock and Random. Nothing runs after the scope has closed. */
export const make: Effect.Effect<Host, never, Scope.Scope> = Effect.gen(function* () {
  const clock = yield* Clock.Clock
  const random = yield* Random.Random
  const timers = yield* Timers.make
  return {
    now: () => clock.currentTimeMillisUnsafe(),
    after: (delay, run) => {
      const timer = timers.after(delay, run)
      return () => timers.cancel(timer)
    },
    random: () => random.nextDoubleUnsafe()
  }
})
