/** JSON as text: whatever it is, and wherever it is cut. */
import { assert, describe, it } from "@effect/vitest"
import * as Json from "../src/internal/work/json.ts"

const values: ReadonlyArray<unknown> = [
  [],
  {},
  [[], {}, [{}], { "": [] }],
  { a: [1, -2.5e-7, true, null, ""], 'b\\"': { c: `"\\\u00e9\u2028\ud83d\ude00\n/`, d: "[{,:}]" } },
  ["\\", '"', '\\\\"', { "]": "}" }, 0],
  "a text",
  12.5
]

describe("JSON", () => {
  it("has a line for each value, and is the same", () => {
    for (const value of values) {
      const text = JSON.stringify(value, undefined, 2)
      assert.strictEqual(Json.indented(JSON.stringify(value), Number.POSITIVE_INFINITY), text)
      assert.strictEqual(Json.indented(text, Number.POSITIVE_INFINITY), text)
    }
  })

  it("that is cut anywhere is valid, and begins as the whole does", () => {
    for (const value of values) {
      const whole = `[${JSON.stringify(value).replaceAll("\u00e9", String.raw`\u00e9`)}]`
      for (let end = 1; end <= whole.length; end++) {
        const closed = Json.closed(whole.slice(0, end))
        assert.isArray(JSON.parse(closed), closed)
        assert.isTrue(whole.startsWith(closed.replace(/["\]}]*$/, "")), closed)
      }
    }
  })
})
