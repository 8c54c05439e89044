/** Effect's clock, randomness and fibers, fetched when a consumer starts, so that messages cost no fiber for them. */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import type * as Fiber from "effect/Fiber"
import * as Random from "../../adapter-kit/Random.ts"
import type { Timers } from "../../adapter-kit/Timers.ts"

export interface Runtime {
  readonly timers: Timers
  /** Starts a fiber that has the services which the handler needs. */
  readonly fork: <A, E>(effect: Effect.Effect<A, E>) => Fiber.Fiber<A, E>
  /** Gives the event loop a turn, then calls back. */
  readonly yieldThen: (resume: () => void) => void
  /** A random number from 0 to below 1. */
  readonly random: () => number
  /** Milliseconds since the epoch. */
  readonly wallClock: () => number
}

/** Makes a runtime for a handler that needs the services `R`. */
export const make = <R>(timers: Timers): Effect.Effect<Runtime, never, R> =>
  Effect.gen(function* () {
    const clock = yield* Clock.Clock
    const source = yield* Random.source
    const fork = Effect.runForkWith(yield* Effect.context<R>())
    return {
      timers,
      fork,
      yieldThen: (resume) => void fork(Effect.yieldNow).addObserver(resume),
      random: () => Random.draw(source),
      wallClock: clock.currentTimeMillisUnsafe.bind(clock)
    }
  })
