import { assert, describe, it } from "@effect/vitest"
import * as Backoff from "../../src/policy/Backoff.ts"
import type * as Jitter from "../../src/policy/Jitter.ts"

/** Numbers from 0 (inclusive) to 1 (exclusive), the same in each run: a linear congruential generator. */
const randoms = (count: number): ReadonlyArray<number> => {
  let state = 7
  return Array.from({ length: count }, () => (state = (state * 1_664_525 + 1_013_904_223) % 2 ** 32) / 2 ** 32)
}

const minute = 60_000

describe("under a cap that the curve has long reached, delays are spread and do not lie on the cap", () => {
  const rows: ReadonlyArray<readonly [string, Jitter.Jitter, number]> = [
    ["full", "full", 0],
    ["equal", "equal", 2.5 * minute],
    ["decorrelated", "decorrelated", 1000],
    ["proportional", { proportional: 0.2 }, 4 * minute]
  ]
  it.each(rows)("%s", (_, jitter, low) => {
    const backoff = Backoff.exponential("1 second", { max: "5 minutes", jitter })
    for (const attempts of [12, 15, 1000]) {
      assert.deepStrictEqual(Backoff.range(backoff, attempts), [low, 5 * minute])
      const delays = randoms(10_000).map((random) => Backoff.delayAfter(backoff, attempts, random))
      assert.isBelow(delays.filter((delay) => delay === 5 * minute).length, 100)
      const mean = delays.reduce((sum, delay) => sum + delay) / delays.length
      const middle = (low + 5 * minute) / 2
      assert.isBelow(Math.abs(mean - middle), 0.02 * (5 * minute - low))
    }
  })

  it("200 messages at a cap of a minute: no second has more than a tenth of them", () => {
    const backoff = Backoff.exponential("1 second", { max: "1 minute", jitter: "full" })
    const perSecond = new Map<number, number>()
    for (const random of randoms(200)) {
      const second = Math.floor(Backoff.delayAfter(backoff, 12, random) / 1000)
      perSecond.set(second, (perSecond.get(second) ?? 0) + 1)
    }
    assert.isBelow(Math.max(...perSecond.values()), 20)
  })
})
