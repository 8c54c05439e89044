import { assert, describe, it } from "@effect/vitest"
import * as Codec from "../../src/message/Codec.ts"
import * as Losses from "../../src/message/internal/losses.ts"

const price = Number.NaN
const cases: ReadonlyArray<readonly [string, unknown, string | undefined]> = [
  ["JSON", { a: [1, "two", null, true, { b: undefined }], at: new Date(0) }, undefined],
  ["a Map", { tags: new Map([["a", 1]]) }, "body.tags is a Map, whose content JSON leaves out"],
  ["a Set in a list", [1, new Set([1])], "body[1] is a Set, whose content JSON leaves out"],
  [
    "an Error",
    { cause: { error: new TypeError("no") } },
    "body.cause.error is an Error, whose content JSON leaves out"
  ],
  ["a form", { query: new URLSearchParams("a=1") }, "body.query is a URLSearchParams, whose content JSON leaves out"],
  ["NaN", { lines: [{ price: 1 }, { price }] }, "body.lines[1].price is NaN, which JSON turns into null"],
  ["infinity", Number.NEGATIVE_INFINITY, "body is -Infinity, which JSON turns into null"],
  ["a function", { "on-end": () => {} }, 'body["on-end"] is a function, which JSON leaves out'],
  ["a symbol in a list", [Symbol("a")], "body[0] is a symbol, which JSON turns into null"],
  ["nothing in a list", [undefined], "body[0] is undefined, which JSON turns into null"],
  ["an invalid Date", { at: new Date("soon") }, "body.at is an invalid Date, which JSON turns into null"],
  ["bytes", { key: new Uint8Array(2) }, "body.key is a Uint8Array, which JSON turns into an object"],
  [
    "what has a form of its own",
    { map: Object.assign(new Map(), { toJSON: () => [] }), buffer: Buffer.from("a") },
    undefined
  ]
]

describe("losses", () => {
  it.each(cases)("of %s", (_, body, expected) => {
    const found: Array<string> = []
    Losses.watch(
      ({ detail, path }) => found.push(`${path} is ${detail}`),
      () => Codec.json.encode(body)
    )
    assert.deepStrictEqual(found, expected === undefined ? [] : [expected])
  })

  it("are not looked for outside of a watch", () => {
    const found: Array<unknown> = []
    Losses.watch(
      (loss) => found.push(loss),
      () => {}
    )
    Codec.json.encode({ price })
    assert.deepStrictEqual(found, [])
  })

  it("are looked for in the first thousand values of a body", () => {
    const list = Array.from({ length: 2000 }, () => 1)
    assert.isUndefined(Losses.find([...list, price]))
    assert.strictEqual(Losses.find([price, ...list])?.path, "body[0]")
  })
})
