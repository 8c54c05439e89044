import { assert, describe, it } from "vitest"
import * as Body from "../src/Body.ts"

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text)
const noText = Uint8Array.of(0xff, 0xfe)

describe("a body", () => {
  it.each([
    [bytes('{"a":1}'), { a: 1 }, '{"a":1}'],
    [bytes("plain"), "plain", "plain"],
    [bytes(""), "", ""],
    [noText, { base64: "//4=" }, "base64://4="],
    // What would clear the operator's screen does not.
    [bytes("a\u001b[2Jb\nc"), "a\u001b[2Jb\nc", "a\ufffd[2Jb\nc"]
  ])("%j", (body, json, text) => {
    assert.deepStrictEqual(Body.toJson(body), json)
    assert.strictEqual(Body.show(body), text)
  })

  it("is shortened to a line", () => {
    assert.strictEqual(Body.line(bytes("one\n  two\tthree"), 20), "one two three")
    assert.strictEqual(Body.line(bytes("one two three"), 7), "one tw…")
    assert.strictEqual(Body.line(bytes("one two"), 7), "one two")
  })
})
