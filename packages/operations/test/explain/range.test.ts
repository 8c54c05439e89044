import { assert, describe, it } from "@effect/vitest"
import * as Range from "../../src/explain/internal/range.ts"

describe("a range", () => {
  it("has the middle, and where nine of ten lie", () => {
    const values = Array.from({ length: 101 }, (_, i) => 100 - i)
    assert.deepStrictEqual(Range.of(values), { low: 5, median: 50, high: 95 })
    assert.deepStrictEqual(Range.of([7]), { low: 7, median: 7, high: 7 })
  })
})
