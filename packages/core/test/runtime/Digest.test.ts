import { assert, it } from "@effect/vitest"
import * as fc from "fast-check"
import * as Digest from "../../src/runtime/Digest.ts"

/** FNV-1a as it is defined, in whole numbers of any size. */
const reference = (bytes: Uint8Array): string => {
  let hash = 0xcbf29ce484222325n
  for (const byte of bytes) hash = BigInt.asUintN(64, (hash ^ BigInt(byte)) * 0x100000001b3n)
  return hash.toString(16).padStart(16, "0")
}

// http://www.isthe.com/chongo/src/fnv/test_fnv.c
it.each([
  ["", "cbf29ce484222325"],
  ["a", "af63dc4c8601ec8c"],
  ["foobar", "85944171f73967e8"]
])("of %j is %s", (text, expected) => assert.strictEqual(Digest.hex(text), expected))

it("is FNV-1a, wherever the bytes are divided", () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 100 }), fc.nat(100), (bytes, at) => {
      assert.strictEqual(Digest.hex(bytes.slice(0, at), bytes.slice(at)), reference(bytes))
    })
  )
})
