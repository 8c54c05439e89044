import { assert, describe, it } from "vitest"
import * as Plot from "../src/Plot.ts"

describe("a bar", () => {
  it.each([
    [0, ""],
    [0.001, "▏"],
    [4, "████"],
    [5, "█████"],
    [10, "██████████"]
  ])("of %d in 10", (value, expected) => {
    assert.strictEqual(Plot.bar(value, 10, 10), expected)
  })
})

describe("columns", () => {
  it("are as high as their values", () => {
    assert.deepStrictEqual(Plot.columns([0, 1, 2, 4], { height: 2, width: 4 }), ["   █", " ▄██"])
  })

  it("show the highest of what falls together", () => {
    assert.deepStrictEqual(Plot.columns([0, 8, 0, 4], { height: 1, width: 2 }), ["█▄"])
  })

  it("stretch what is short", () => {
    assert.deepStrictEqual(Plot.columns([8, 4], { height: 1, width: 4 }), ["██▄▄"])
  })
})
