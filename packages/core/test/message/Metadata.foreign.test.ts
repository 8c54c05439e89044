import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import * as Metadata from "../../src/message/Metadata.ts"

describe("foreign headers", () => {
  it.each([
    "",
    "hello",
    "null",
    "5",
    "[]",
    "{}",
    '{"v":2,"id":"a","a":0,"t0":0}',
    '{"v":1,"id":"","a":0,"t0":0}',
    '{"v":1,"id":5,"a":0,"t0":0}',
    '{"v":1,"id":"a","t0":0}',
    '{"v":1,"id":"a","a":-1,"t0":0}',
    '{"v":1,"id":"a","a":0,"t0":"0"}',
    '{"v":1,"id":"a","a":1e999,"t0":0}'
  ])("%s", (text) => assert.isUndefined(Metadata.decode(text)))

  it("keep what is valid of a damaged one", () => {
    const text = JSON.stringify({
      v: 1,
      id: "a",
      a: 2,
      t0: 5,
      nb: "x",
      rd: null,
      h: [[1, 2, "e", 3], [1], 5],
      dl: { q: 1 }
    })
    const expected = { ...Metadata.make("a", 5), attempts: 2, history: [{ attempt: 1, at: 2, error: "e", delay: 3 }] }
    assert.deepStrictEqual(Metadata.decode(text), expected)
  })

  it("an error in a dead letter that is no text", () => {
    const dl = { q: "q", r: "permanent", n: { toString: 1, valueOf: 1 }, m: [5] }
    const { deadLetter } = Metadata.decode(JSON.stringify({ v: 1, id: "a", a: 0, t0: 0, dl }))!
    assert.deepStrictEqual(deadLetter, {
      queue: "q",
      attempts: 0,
      reason: "permanent",
      at: 0,
      error: { name: "", message: "" }
    })
  })

  it("never throw", () => {
    const shaped = fc.record(
      {
        v: fc.constant(1),
        id: fc.string(),
        a: fc.jsonValue(),
        t0: fc.nat(),
        nb: fc.jsonValue(),
        rd: fc.jsonValue(),
        h: fc.jsonValue(),
        dl: fc.jsonValue()
      },
      { requiredKeys: ["v"] }
    )
    const texts = fc.oneof(
      fc.string({ unit: "binary" }),
      fc.json(),
      shaped.map((value) => JSON.stringify(value))
    )
    fc.assert(
      fc.property(texts, (text) => void Metadata.decode(text)),
      { numRuns: 2000 }
    )
  })
})
