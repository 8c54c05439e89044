/** What comes early fails, but for what two clocks can differ. */
import { assert, it } from "@effect/vitest"
import * as Control from "../src/Control.ts"
import * as Lateness from "../src/internal/lateness.ts"

const checks = (precision: number) =>
  Lateness.make({ bound: 10, slack: 10, now: () => 0, control: { ...Control.none, precision } })

it.each([
  [2, 400],
  [2, 398],
  [0, 400]
] as const)("with clocks that differ by %i ms, 400 ms that took %i ms are not early", (precision, took) => {
  checks(precision).checkNotEarly("the retry", 400, 1000, 1000 + took)
})

it.each([
  [2, 397],
  [0, 399]
] as const)("with clocks that differ by %i ms, 400 ms that took %i ms are early", (precision, took) => {
  const early = `the retry: early, asked for 400 ms, came after ${took} ms`
  assert.throws(() => checks(precision).checkDelay("the retry", 400, 1000, 1000 + took), early)
})
