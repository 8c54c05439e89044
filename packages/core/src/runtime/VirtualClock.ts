/**
 * Virtual clocks: a `TestClock` that starts at any date and reports when the next sleeper wakes, so a test can step from
 * one wake-up to the next.
 *
 * When to use: to run a broker or a consumer in virtual time. Requeue takes all time from Effect's Clock, so a virtual
 * clock controls all delays, timeouts and time stamps.
 */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type * as TestClock from "effect/testing/TestClock"

/** A virtual clock. Its times are in epoch milliseconds. */
export interface VirtualClock extends TestClock.TestClock {
  /** Returns when the next sleeper wakes; `undefined` if there are no sleepers. */
  readonly next: () => number | undefined
}

/**
 * Makes a virtual clock from a test clock: its wall clock starts at `epoch` (epoch milliseconds), and its monotonic time is
 * the test clock's.
 *
 * @example
 * ```ts
 * import { VirtualClock } from "@requeue/core"
 * import { Duration, Effect } from "effect"
 * import { TestClock } from "effect/testing"
 *
 * const program = Effect.gen(function* () {
 *   const clock = VirtualClock.make(yield* TestClock.make(), Date.UTC(2030, 0, 1))
 *   yield* Effect.forkChild(clock.sleep(Duration.minutes(1)), { startImmediately: true })
 *   return new Date(clock.next()!).toISOString()
 * })
 *
 * await Effect.runPromise(Effect.scoped(program)) // => "2030-01-01T00:01:00.000Z"
 * ```
 */
export const make = (clock: TestClock.TestClock, epoch: number): VirtualClock => {
  /** When sleepers wake, by the test clock: adding the epoch would round fractions of a millisecond. */
  const wakes: Array<number> = []
  const millis = () => clock.currentTimeMillisUnsafe() + epoch
  const nanos = () => clock.currentTimeNanosUnsafe() + BigInt(epoch) * 1_000_000n
  return {
    ...clock,
    currentTimeMillisUnsafe: millis,
    currentTimeMillis: Effect.sync(millis),
    currentTimeNanosUnsafe: nanos,
    currentTimeNanos: Effect.sync(nanos),
    // Wakes a sleeper at the time that `next` returned, even if the difference is rounded down.
    setTime: (time) => clock.setTime(wakes.reduce((to, at) => (at > to && at + epoch <= time ? at : to), time - epoch)),
    sleep: (duration) =>
      Effect.suspend(() => {
        const at = clock.currentTimeMillisUnsafe() + Duration.toMillis(duration)
        if (!Number.isFinite(at)) return Effect.never
        wakes.push(at)
        return Effect.ensuring(
          clock.sleep(duration),
          Effect.sync(() => wakes.splice(wakes.indexOf(at), 1))
        )
      }),
    next: () => (wakes.length === 0 ? undefined : Math.min(...wakes) + epoch)
  }
}
