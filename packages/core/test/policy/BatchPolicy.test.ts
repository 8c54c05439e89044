import { assert, describe, it } from "@effect/vitest"
import * as BatchPolicy from "../../src/policy/BatchPolicy.ts"

describe("BatchPolicy", () => {
  it("has these defaults and limits", () => {
    assert.deepStrictEqual(BatchPolicy.make(), { maxBatchSize: 10, maxBatchTimeout: 5000 })
    assert.deepStrictEqual(BatchPolicy.single, { maxBatchSize: 1, maxBatchTimeout: 0 })
    const longest = BatchPolicy.make({ maxBatchSize: 100, maxBatchTimeout: "60 seconds" })
    assert.deepStrictEqual(longest, { maxBatchSize: 100, maxBatchTimeout: 60_000 })
    assert.deepStrictEqual(BatchPolicy.make({ maxBatchTimeout: 0.5 }).maxBatchTimeout, 1)
  })

  it.each([0, 101, -1, 1.5, Number.NaN, Number.POSITIVE_INFINITY])("refuses a size of %s", (maxBatchSize) =>
    assert.throws(() => BatchPolicy.make({ maxBatchSize }), RangeError, `BatchPolicy.make: maxBatchSize must be`)
  )

  it.each([-1, -0.5, 60_001, Number.NaN, "61 seconds" as const])("refuses a timeout of %s", (maxBatchTimeout) =>
    assert.throws(() => BatchPolicy.make({ maxBatchTimeout }), RangeError, "BatchPolicy.make: maxBatchTimeout must be")
  )
})
