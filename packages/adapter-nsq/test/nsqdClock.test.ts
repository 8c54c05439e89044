/** The clock of an nsqd, from what it tells. */
import * as fc from "fast-check"
import { assert, test } from "vitest"
import * as NsqdClock from "../src/internal/connect/nsqdClock.ts"

test("is the consumer's wall clock while nothing is known", () =>
  assert.strictEqual(NsqdClock.make().now(1_700_000_000_000, 5), 1_700_000_000_000))

test("is never off by more than a second, however wrong the consumer's wall clock is and wherever it steps", () =>
  fc.assert(
    fc.property(
      fc.integer({ min: 1_600_000_000_000, max: 1_900_000_000_000 }),
      fc.array(fc.record({ elapsed: fc.nat(10_000_000), wrong: fc.integer({ min: -8e7, max: 8e7 }) }), {
        minLength: 1
      }),
      fc.nat(200),
      (start, steps, trip) => {
        const nsqd = (elapsed: number) => start + elapsed
        const clock = NsqdClock.make()
        clock.dated(Math.floor(nsqd(trip) / 1000) * 1000, 0, 2 * trip)
        for (const { elapsed, wrong } of steps) {
          const now = 2 * trip + elapsed
          assert.isAtMost(Math.abs(clock.now(nsqd(now) + wrong, now) - nsqd(now)), 1000 + 2 * trip)
        }
      }
    )
  ))

test("is exact when nsqd has just stored a message, though the consumer's wall clock is an hour behind", () => {
  const clock = NsqdClock.make()
  clock.stored(1_700_000_000_000, 100)
  clock.stored(1_600_000_000_000, 200)
  assert.strictEqual(clock.now(1_700_000_000_000 - 3_600_000, 300), 1_700_000_000_200)
})
