/**
 * A `TestClock` that starts at a time of its own and knows when the next sleeper wakes, so that a test can go from one
 * wake-up to the next.
 *
 * When to use: to drive a broker or a consumer in virtual time. Everything of Requeue takes its time from Effect's Clock,
 * so that this one governs all delays, timeouts and time stamps.
 */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type * as TestClock from "effect/testing/TestClock"

/** All times are in milliseconds since 1970. */
export interface VirtualClock extends TestClock.TestClock {
  /** When the next sleeper wakes; `undefined` when nobody sleeps. */
  readonly next: () => number | undefined
}

/**
 * The test clock, with `epoch` (milliseconds since 1970) added to its wall clock. Its monotonic time stays as it is.
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
