import { assert, describe, it } from "@effect/vitest"
import * as History from "../../src/explain/internal/history.ts"

describe("a history", () => {
  it("has the highest of each slice, and goes on where nothing is noted", () => {
    const history = History.make(10)
    for (const [at, value] of [
      [1, 3],
      [2, 1],
      [12, 5],
      [19, 2],
      [45, 7]
    ] as const) {
      history.note(at, value)
    }
    assert.deepStrictEqual(history.all(), { slice: 10, values: [3, 5, 2, 2, 7], peak: 7 })
  })
})
