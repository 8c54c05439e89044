/**
 * Runs a program in virtual time: a `TestClock` that advances to the time of the next sleeper when the program is idle.
 *
 * Nothing waits in real time: hours of delays take milliseconds, and everything that is due happens in order. Before the clock
 * advances, active fibers and promises get turns of the event loop. The program must use Effect's Clock, and must not wait for
 * input or output. Each run draws the same random numbers, so a test that passes once passes always.
 */
import { VirtualClock } from "@requeue/core/port"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Random from "effect/Random"
import { TestClock } from "effect/testing"

/** The time at which virtual time begins, 2030-01-01T00:00:00Z, in milliseconds since 1970: no time of a test is 0. */
export const epoch: number = Date.UTC(2030, 0, 1)

/** Turns of the event loop before the clock advances. */
const turns = 10

/** Rounds of {@link turns} after which a program fails that waits for something other than the clock. */
const maxIdleRounds = 10_000

/**
 * Runs the effect in its own virtual time, which begins at {@link epoch}. Its random numbers are the same in each run; an effect
 * with `Random.withSeed` draws others. Dies if the effect waits forever.
 */
export const run = <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.gen(function* () {
    const context = yield* Layer.build(TestClock.layer())
    const testClock = yield* Effect.provideContext(TestClock.testClockWith(Effect.succeed), context)
    const clock = VirtualClock.make(testClock, epoch)
    const fiber = yield* effect.pipe(
      Effect.provideService(Clock.Clock, clock),
      Effect.provideContext(context),
      Random.withSeed("requeue"),
      Effect.forkChild
    )
    for (let idle = 0; fiber.pollUnsafe() === undefined; ) {
      for (let turn = 0; turn < turns; turn++) yield* Effect.yieldNow
      const next = clock.next()
      if (next !== undefined) {
        idle = 0
        yield* clock.setTime(next)
      } else if (++idle > maxIdleRounds) {
        yield* Fiber.interrupt(fiber)
        return yield* Effect.die(new Error("VirtualTime.run: the program waits for something other than the clock"))
      }
    }
    return yield* Fiber.join(fiber)
  }).pipe(Effect.scoped)
