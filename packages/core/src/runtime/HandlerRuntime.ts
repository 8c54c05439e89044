/**
 * Effect's clock, randomness and fibers, and the async context. They are read once when a consumer starts, so no message
 * needs a fiber for them.
 */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import type * as Fiber from "effect/Fiber"
import * as AsyncContext from "./AsyncContext.ts"
import * as Random from "./Random.ts"
import type { Timers } from "./Timers.ts"
import * as Failure from "../policy/Failure.ts"
import * as StackTrace from "../policy/StackTrace.ts"

/** The shared parts of the handler runs of one consumer: timers, fibers, clocks, and the async context of user functions. */
export interface HandlerRuntime {
  readonly timers: Timers
  /** Calls a user's function in the async context in which the consumer was created. */
  readonly within: AsyncContext.Within
  /** Makes a failure of a thrown value, in the consumer's async context, because the value's properties may be getters. */
  readonly readFailure: (error: unknown) => Failure.Failure
  /** Starts a fiber in the consumer's async context, with the handler's services. */
  readonly fork: <A, E>(effect: Effect.Effect<A, E>) => Fiber.Fiber<A, E>
  /** Starts a fiber in the caller's async context, with the handler's services: the call of a handler on its message. */
  readonly forkHere: <A, E>(effect: Effect.Effect<A, E>) => Fiber.Fiber<A, E>
  /** Yields to the event loop, then calls back. */
  readonly yieldThen: (resume: () => void) => void
  /** Returns a random number from 0 to below 1. */
  readonly random: () => number
  /** Returns the time in milliseconds since the epoch. */
  readonly wallClock: () => number
}

/** Makes a runtime for a handler that needs the services `R`. `stackTraces`: whether failures keep their stack traces. */
export const make = <R>(timers: Timers, stackTraces: boolean): Effect.Effect<HandlerRuntime, never, R> =>
  Effect.gen(function* () {
    const clock = yield* Clock.Clock
    const source = yield* Random.source
    const within = AsyncContext.capture()
    const traceOf = stackTraces ? (error: unknown) => AsyncContext.bind(within, StackTrace.of(error)) : undefined
    const forkHere: HandlerRuntime["forkHere"] = Effect.runForkWith(yield* Effect.context<R>())
    const fork = AsyncContext.bind(within, forkHere)
    return {
      timers,
      within,
      readFailure: (error) => within(Failure.make, error, clock.currentTimeMillisUnsafe(), traceOf?.(error)),
      fork,
      forkHere,
      yieldThen: (resume) => void fork(Effect.yieldNow).addObserver(resume),
      random: () => Random.draw(source),
      wallClock: clock.currentTimeMillisUnsafe.bind(clock)
    }
  })
