import assert from "node:assert/strict"
import { test } from "node:test"
import { patch } from "./patched.mjs"

const wanted = { file: "src/settle.ts", text: "a + b", replacement: "a - $&" }

test("the text of the file is replaced, and its replacement stands there as it is", () =>
  assert.equal(patch("/home/src/settle.ts", "const c = a + b", wanted), "const c = a - $&"))

test("other files stay as they are", () => assert.equal(patch("/home/src/other.ts", "a + b", wanted), "a + b"))

for (const source of ["", "a + b + a + b"]) {
  test(`a text that does not occur once is an error: "${source}"`, () =>
    assert.throws(() => patch("/home/src/settle.ts", source, wanted), /expected its text once/))
}
