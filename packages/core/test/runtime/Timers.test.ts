import { assert, it } from "@effect/vitest"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Timers from "../../src/runtime/Timers.ts"

it.effect("sleeps once at a time, however often an earlier timer is set, and not at all after the scope", () =>
  Effect.gen(function* () {
    const clock = yield* Clock.Clock
    let sleeping = 0
    const counting: Clock.Clock = Object.assign(Object.create(clock) as Clock.Clock, {
      sleep: (duration: Parameters<Clock.Clock["sleep"]>[0]) =>
        Effect.suspend(() => {
          sleeping++
          return Effect.ensuring(
            clock.sleep(duration),
            Effect.sync(() => sleeping--)
          )
        })
    })
    yield* Effect.scoped(
      Effect.gen(function* () {
        const timers = yield* Timers.make
        for (let delay = 50; delay > 0; delay--) timers.after(delay * 1000, () => {})
        assert.strictEqual(sleeping, 1)
      })
    ).pipe(Effect.provideService(Clock.Clock, counting))
    assert.strictEqual(sleeping, 0)
  })
)

it.live("tells the time of the clock that was provided, else the system's", () =>
  Effect.scoped(
    Effect.gen(function* () {
      const before = performance.now()
      const { now } = yield* Timers.make
      assert.isTrue(before <= now() && now() <= performance.now())
      const stopped: Clock.Clock = Object.assign(Object.create(yield* Clock.Clock) as Clock.Clock, {
        monotonicTimeNanosUnsafe: () => 7_500_000n
      })
      const { now: provided } = yield* Effect.provideService(Timers.make, Clock.Clock, stopped)
      assert.deepStrictEqual([provided(), provided()], [7.5, 7.5])
    })
  )
)
