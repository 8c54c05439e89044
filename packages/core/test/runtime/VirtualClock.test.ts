import { assert, it } from "@effect/vitest"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import { TestClock } from "effect/testing"
import * as VirtualClock from "../../src/runtime/VirtualClock.ts"

const epoch = Date.UTC(2030, 0, 1)

it.effect("a sleeper wakes when the clock is set to the time at which it wakes, also within a millisecond", () =>
  Effect.gen(function* () {
    const clock = VirtualClock.make(yield* TestClock.make(), epoch)
    for (let third = 1; third <= 1000; third++) {
      yield* Effect.forkChild(clock.sleep(Duration.millis(third / 3)), { startImmediately: true })
      yield* clock.setTime(clock.next() ?? Number.NaN)
      assert.strictEqual(clock.next(), undefined, `${third} thirds of a millisecond`)
    }
  })
)
