import { assert, describe, it } from "@effect/vitest"
import * as Schema from "effect/Schema"
import type { StandardSchemaV1 } from "effect/StandardSchema"
import * as fc from "fast-check"
import * as Codec from "../../src/message/Codec.ts"
import { InvalidBody } from "../../src/message/InvalidBody.ts"
import * as SchemaCodec from "../../src/message/SchemaCodec.ts"

const utf8 = (text: string) => new TextEncoder().encode(text)
const invalid = new Uint8Array([0x68, 0xff, 0xfe])

describe("bytes", () => {
  it("are themselves, in a buffer of their own", () => {
    for (const copy of [Codec.bytes.encode(invalid), Codec.bytes.decode(invalid, {})]) {
      assert.deepStrictEqual(copy, invalid)
      assert.notStrictEqual(copy, invalid)
    }
  })

  it("of a view, such as Node's Buffer, are copied as well, and seen by nobody else", () => {
    const view = Buffer.from([1, 2, 3, 4]).subarray(1, 3)
    for (const copy of [Codec.bytes.encode(view), Codec.bytes.decode(view, {})] as Array<Uint8Array>) {
      view[0] = 9
      assert.deepStrictEqual([...copy], [2, 3])
      assert.isFalse(Buffer.isBuffer(copy))
      copy.fill(7)
      assert.deepStrictEqual([...view], [9, 3])
      view[0] = 2
    }
  })

  it("are what they were, whatever their size, and whatever is copied after them", () =>
    fc.assert(
      fc.property(fc.array(fc.uint8Array({ maxLength: 3000, size: "max" }), { maxLength: 30 }), (bodies) => {
        const copies = bodies.map((body) => Codec.bytes.decode(body, {}))
        assert.deepStrictEqual(copies, bodies)
      })
    ))
})

describe("text", () => {
  it("survives, in any script, with a byte order mark", () => {
    const same = (text: string) => assert.strictEqual(Codec.text.decode(Codec.text.encode(text), {}), text)
    fc.assert(fc.property(fc.string({ unit: "binary" }), (text) => same(text.toWellFormed())))
    same("\uFEFFa")
  })

  it("is refused when it is no UTF-8", () => assert.throws(() => void Codec.text.decode(invalid, {}), TypeError))
})

describe("json", () => {
  it("survives", () =>
    fc.assert(
      fc.property(fc.jsonValue({ noUnicodeString: false }), (value) =>
        assert.deepStrictEqual(Codec.json.decode(Codec.json.encode(value), {}), JSON.parse(JSON.stringify(value)))
      )
    ))

  it("may begin with a byte order mark", () =>
    assert.deepStrictEqual(Codec.json.decode(utf8('\uFEFF{"a":1}'), {}), { a: 1 }))

  it.each([undefined, () => 1, Symbol("s")])("refuses %s, which has no JSON form", (value) =>
    assert.throws(() => Codec.json.encode(value), TypeError, "has no JSON form")
  )

  it("refuses a bigint and a cycle", () => {
    const circular: Record<string, unknown> = {}
    circular["self"] = circular
    assert.throws(() => Codec.json.encode(1n), TypeError)
    assert.throws(() => Codec.json.encode(circular), TypeError)
  })

  it.each(["", "{", "undefined", "{'a':1}"])("cannot decode %j", (text) =>
    assert.throws(() => Codec.json.decode(utf8(text), {}), SyntaxError)
  )

  it("cannot decode what is no UTF-8", () => assert.throws(() => Codec.json.decode(invalid, {}), TypeError))
})

describe("standard", () => {
  const standard = <A>(
    validate: (value: unknown) => StandardSchemaV1.Result<A> | Promise<StandardSchemaV1.Result<A>>
  ) => Codec.standard<A>({ "~standard": { version: 1, vendor: "test", validate } } as StandardSchemaV1<unknown, A>)

  it("gives what the schema makes of the value", () => {
    const codec = standard((value) => ({ value: Number(value) * 2 }))
    assert.strictEqual(codec.decode(codec.encode(21), {}), 42)
    assert.strictEqual(codec.contentType, "application/json")
  })

  it("throws the issues with their paths", () => {
    const issues = [
      { message: "not at all" },
      { message: "Required", path: ["a", 0, { key: "b" }] },
      { message: "Odd", path: [Symbol("s")] }
    ]
    const codec = standard(() => ({ issues }))
    assert.throws(() => void codec.decode(utf8("1"), {}), InvalidBody, "not at all; a[0].b: Required; [Symbol(s)]: Odd")
  })

  it("may be asynchronous", async () => {
    const codec = standard(async (value) => (value === 1 ? { value } : { issues: [{ message: "not 1" }] }))
    assert.strictEqual(await codec.decode(utf8("1"), {}), 1)
    const error = await Promise.resolve(codec.decode(utf8("2"), {})).catch((error: unknown) => error)
    assert.instanceOf(error, InvalidBody)
    assert.strictEqual(error.message, "not 1")
  })

  it("takes an Effect schema", () => {
    const codec = Codec.standard(Schema.toStandardSchemaV1(Schema.Struct({ url: Schema.String })))
    assert.deepStrictEqual(codec.decode(utf8('{"url":"u","more":1}'), {}), { url: "u" })
    assert.throws(() => void codec.decode(utf8('{"url":5}'), {}), InvalidBody, "url: ")
  })
})

describe("SchemaCodec", () => {
  const Order = Schema.Struct({
    id: Schema.String,
    placedAt: Schema.Date,
    lines: Schema.ReadonlyMap(Schema.String, Schema.Number)
  })
  const codec = SchemaCodec.make(Order)
  const order = { id: "o1", placedAt: new Date(0), lines: new Map([["tea", 2]]) }

  it("carries what JSON lacks, as JSON", () => {
    const bytes = codec.encode(order)
    assert.deepInclude(JSON.parse(new TextDecoder().decode(bytes)), { id: "o1", placedAt: "1970-01-01T00:00:00.000Z" })
    assert.deepStrictEqual(codec.decode(bytes, {}), order)
    assert.strictEqual(codec.contentType, "application/json")
  })

  it("refuses to send what is none", () => assert.throws(() => codec.encode({ ...order, id: 5 as never })))

  it("names what is wrong in what it reads", () =>
    assert.throws(() => void codec.decode(utf8('{"id":"o1","placedAt":5,"lines":[]}'), {}), /placedAt/))
})
