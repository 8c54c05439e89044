/**
 * Virtual clocks: a `TestClock` that starts at any date and tells when the next sleeper wakes, so that a test can go from
 * one wake-up to the next.
 *
 * When to use: to run a broker or a consumer in virtual time. All of Requeue takes its time from Effect's Clock, so that
 * a virtual clock governs all delays, timeouts and time stamps.
 */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type * as TestClock from "effect/testing/TestClock"

/** A virtual clock. Its times are in milliseconds since the epoch. */
export interface VirtualClock extends TestClock.TestClock {
  /** The time at which the next sleeper wakes; `undefined` when nobody sleeps. */
  readonly next: () => number | undefined
}

/**
 * Makes a virtual clock from a test clock: its wall clock starts at `epoch` (milliseconds since the epoch), and its
 * monotonic time is that of the test clock.
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
  const due: Array<number> = []
  const millis = () => clock.currentTimeMillisUnsafe() + epoch
  const nanos = () => clock.currentTimeNanosUnsafe() + BigInt(epoch) * 1_000_000n
  return {
    ...clock,
    currentTimeMillisUnsafe: millis,
    currentTimeMillis: Effect.sync(millis),
    currentTimeNanosUnsafe: nanos,
    currentTimeNanos: Effect.sync(nanos),
    setTime: (time) => clock.setTime(time - epoch),
    sleep: (duration) =>
      Effect.suspend(() => {
        const at = millis() + Duration.toMillis(duration)
        if (!Number.isFinite(at)) return Effect.never
        due.push(at)
        return Effect.ensuring(
          clock.sleep(duration),
          Effect.sync(() => due.splice(due.indexOf(at), 1))
        )
      }),
    next: () => (due.length === 0 ? undefined : Math.min(...due))
  }
}
