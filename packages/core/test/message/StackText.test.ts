/** Stack traces that are shortened until they fit. */
import { assert, describe, it } from "@effect/vitest"
import * as StackText from "../../src/message/StackText.ts"

describe("a shortened stack trace", () => {
  it("keeps the first frames", () => {
    const short = StackText.shorten("    at a\n    at b\n    at c", (text) => text.length <= 20)
    assert.strictEqual(short, "    at a\n    …")
  })

  it.each(["\n    at a", "\n"])("is undefined if only an empty line fits: %j", (stack) => {
    assert.isUndefined(StackText.shorten(stack, (text) => text.length < 1))
  })
})
