import * as fc from "fast-check"
import { assert, describe, it } from "vitest"
import * as Statistics from "../src/statistics.ts"

const values = fc.array(fc.double({ min: 0.001, max: 1e6, noNaN: true }), { minLength: 1, maxLength: 50 })

describe("spread", () => {
  it("is the middle of odd and of even numbers of values", () => {
    assert.deepStrictEqual(Statistics.spread([3, 1, 2]), { median: 2, min: 1, max: 3 })
    assert.deepStrictEqual(Statistics.spread([4, 1, 2, 3]), { median: 2.5, min: 1, max: 4 })
    assert.throws(() => Statistics.spread([]), RangeError)
  })

  it("has as many values below the median as above it", () => {
    fc.assert(
      fc.property(values, (all) => {
        const { median } = Statistics.spread(all)
        const below = all.filter((value) => value < median).length
        const above = all.filter((value) => value > median).length
        assert.isAtMost(Math.max(below, above), all.length / 2)
      })
    )
  })
})

describe("ratio", () => {
  it("is 1 for the same, and ranges over rounds", () => {
    assert.deepStrictEqual(Statistics.ratio([2, 3, 4], [2, 3, 4]), { median: 1, min: 1, max: 1 })
    assert.deepStrictEqual(Statistics.ratio([2, 3, 8], [2, 1, 4]), { median: 1.5, min: 1, max: 3 })
  })

  it("a control that is off by more than the tolerance disturbs", () => {
    const isOff = (median: number) => Statistics.isDisturbed({ median, min: 0, max: 2 })
    assert.deepStrictEqual([0.94, 0.96, 1, 1.04, 1.06].map(isOff), [true, false, false, false, true])
  })
})

describe("quantile", () => {
  it("is the smallest value that so many do not exceed", () => {
    const hundred = Array.from({ length: 100 }, (_, n) => 100 - n)
    assert.deepStrictEqual(
      [0, 0.5, 0.99, 1].map((share) => Statistics.quantile(hundred, share)),
      [1, 50, 99, 100]
    )
    assert.strictEqual(Statistics.quantile([7], 0.99), 7)
  })
})
