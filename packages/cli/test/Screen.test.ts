import { assert, describe, it } from "vitest"
import * as Screen from "../src/Screen.ts"

describe("a text on a screen", () => {
  it("stands below what is there, the first time", () =>
    assert.strictEqual(Screen.over(undefined, "a\nb", 80), "a\nb\n"))

  it.each([
    ["a\nb", 80, 2],
    ["a\n\nb", 80, 3],
    // A line that is too long for the terminal takes more than one row; colours take no room.
    ["x".repeat(81), 80, 2],
    [`\u001b[31m${"x".repeat(80)}\u001b[39m`, 80, 1],
    // A terminal that does not tell its width.
    ["x".repeat(500), 0, 1]
  ])("replaces the one before: %j on %d columns took %d rows", (before, columns, rows) => {
    assert.strictEqual(Screen.over(before, "next", columns), `\u001b[${rows}F\u001b[Jnext\n`)
  })
})
