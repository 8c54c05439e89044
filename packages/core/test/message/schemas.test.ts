/** Schemas of real libraries, and hostile ones: on both sides, what fits goes on, and what does not says where. */
import { assert, describe, it } from "@effect/vitest"
import type { StandardSchemaV1 } from "effect/StandardSchema"
import * as Schema from "effect/Schema"
import * as fc from "fast-check"
import * as v from "valibot"
import * as z from "zod"
import * as Codec from "../../src/message/Codec.ts"
import { InvalidBody } from "../../src/message/InvalidBody.ts"
import * as QueueDefinition from "../../src/message/QueueDefinition.ts"
import * as Schemas from "./schemas.ts"

const utf8 = (text: string) => new TextEncoder().encode(text)
const given = { headers: {}, native: undefined }

const failure = async (run: () => unknown): Promise<unknown> => {
  try {
    await run()
  } catch (error) {
    return error
  }
  return assert.fail("it did not fail")
}

const input = { items: [{ price: 1 }, { price: 2.5 }], at: "2026-01-01T00:00:00.000Z" }
const output = { items: input.items, at: new Date(Date.UTC(2026, 0)) }

describe.each(Object.entries(Schemas.orders))("a schema of %s", (_, schema) => {
  const codec: Codec.Codec<unknown, any> = Codec.standard<unknown, any>(schema)

  it("puts its input on the wire, and gives its output", async () => {
    assert.deepStrictEqual(await codec.decode(codec.encode(input), {}), output)
    const sealed = await codec.encodeMessage!(input, given)
    assert.deepStrictEqual(JSON.parse(new TextDecoder().decode(sealed.body)), input)
  })

  it("names the place of what does not fit, on both sides", async () => {
    const wrong = { ...input, items: [{ price: 1 }, { price: 2 }, { price: "x" }] }
    for (const error of [
      await failure(() => codec.encodeMessage!(wrong, given)),
      await failure(() => codec.encode(wrong)),
      await failure(() => codec.decode(Codec.json.encode(wrong), {}))
    ]) {
      assert.instanceOf(error, InvalidBody)
      assert.deepStrictEqual(
        error.issues.map(({ path }) => path),
        ["items[2].price"]
      )
      assert.match(error.message, /^items\[2\]\.price\b.*(number)/i)
    }
  })

  it.each(["null", "1", '"text"', "[]", "true"])("refuses %s", async (body) =>
    assert.instanceOf(await failure(() => codec.decode(utf8(body), {})), InvalidBody)
  )

  it("lets no body reach a prototype", async () => {
    const hostile = `{"__proto__":{"admin":true},"constructor":{"prototype":{"admin":true}},${JSON.stringify(input).slice(1)}`
    // Some refuse it, which is as well.
    const body: unknown = await Promise.resolve(hostile)
      .then((text) => codec.decode(utf8(text), {}))
      .catch(() => ({}))
    assert.isUndefined(Reflect.get(Object(body), "admin"))
    assert.isUndefined(Reflect.get({}, "admin"))
  })
})

describe.each(Object.entries(Schemas.later))("an asynchronous schema of %s", (_, schema) => {
  const codec = Codec.standard<unknown, any>(schema)

  it("is waited for on both sides", async () => {
    const free = { code: "free" }
    assert.deepStrictEqual(await codec.decode((await codec.encodeMessage!(free, given)).body, {}), free)
    for (const side of [
      () => codec.encodeMessage!({ code: "taken" }, given),
      () => codec.decode(utf8('{"code":"taken"}'), {})
    ]) {
      const error = await failure(side)
      assert.instanceOf(error, InvalidBody)
      assert.match(error.message, /^code: .*is taken/)
    }
  })

  it("is refused by encode, which cannot wait", () =>
    assert.throws(() => codec.encode({ code: "taken" }), TypeError, "Call encodeMessage instead of encode"))
})

describe("what is checked before a send", () => {
  it("is the JSON that its reader will have", () => {
    const codec = Codec.standard(z.object({ at: z.date() }))
    assert.throws(() => codec.encode({ at: new Date(0) }), InvalidBody, "at: ")
  })

  it("is a copy: a schema that writes into it changes neither body nor message", () => {
    const body = { total: 1 }
    const codec = Codec.standard<unknown, typeof body>({
      "~standard": {
        version: 1,
        vendor: "test",
        validate: (value) => ({ value: Object.assign(value as object, { total: 0, stolen: true }) })
      }
    })
    assert.deepStrictEqual(JSON.parse(new TextDecoder().decode(codec.encode(body))), { total: 1 })
    assert.deepStrictEqual(body, { total: 1 })
  })

  it("may be any JSON value, and is nothing that has no JSON form", () => {
    assert.strictEqual(Codec.standard(z.string()).decode(Codec.standard(z.string()).encode("a"), {}), "a")
    assert.strictEqual(Codec.standard(z.null()).decode(utf8("null"), {}), null)
    assert.throws(
      () => Codec.standard(z.undefined()).encode(undefined),
      TypeError,
      "body is undefined, which has no JSON form"
    )
  })
})

describe("a hostile schema", () => {
  const answering = (validate: (value: unknown) => unknown) =>
    Codec.standard({ "~standard": { version: 1, vendor: "test", validate } } as StandardSchemaV1<unknown, unknown>)
  const decode = (validate: (value: unknown) => unknown) => failure(() => answering(validate).decode(utf8("1"), {}))

  it("that throws is an error of its own", async () => {
    const bug = new Error("a bug")
    const throwing = () => {
      throw bug
    }
    assert.strictEqual(await decode(throwing), bug)
    assert.strictEqual(await decode(() => Promise.reject(bug)), bug)
  })

  it.each([undefined, null, 1, "ok", true])("that answers %j is told so", async (result) => {
    const error = await decode(() => result)
    assert.instanceOf(error, TypeError)
    assert.include((error as TypeError).message, "must return a value or issues")
  })

  it.each([[], "no", [null], [{}], [{ message: 5, path: "a" }]])("whose issues are %j refuses", async (issues) => {
    const error = await decode(() => ({ issues }))
    assert.instanceOf(error, InvalidBody)
    assert.include(error.message, "refuses it")
  })

  it.each([[{}], [[]], [new Date(0)], [{ values: 1 }]])("that answers %j has no result", async (result) => {
    const error = await decode(() => result)
    assert.instanceOf(error, TypeError)
    assert.match(
      (error as TypeError).message,
      /must return a value or issues, got an (object|array|instance of a class) without either$/
    )
  })

  it("that answers a value of undefined has a result", () =>
    assert.isUndefined(answering(() => ({ value: undefined })).decode(utf8("1"), {})))

  it("that answers a thenable is waited for", async () => {
    const thenable = {}
    Reflect.set(thenable, "then", (resolve: (result: unknown) => void) => resolve({ value: 2 }))
    assert.strictEqual(await answering(() => thenable).decode(utf8("1"), {}), 2)
  })

  it("has a message of bounded length", async () => {
    const issues = Array.from({ length: 10_000 }, (_, index) => ({ message: "m".repeat(10_000), path: [index] }))
    const error = await decode(() => ({ issues }))
    assert.instanceOf(error, InvalidBody)
    assert.isBelow(error.message.length, 2000)
    assert.match(error.message, /; and 9995 more$/)
    assert.strictEqual(error.issues.length, 10_000)
    assert.isTrue(error.issues.every(({ message }) => message.length === 257))
  })

  it.each([
    ["of many segments", Array.from({ length: 100_000 }, (_, index) => index)],
    ["of a long name", ["k".repeat(100_000)]],
    ["of a long key", [{ key: " ".repeat(100_000) }]]
  ])("has a path of bounded length: %s", async (_, path) => {
    const error = await decode(() => ({ issues: [{ message: "m", path }] }))
    assert.instanceOf(error, InvalidBody)
    assert.strictEqual(error.issues[0]!.path.length, 257)
    assert.isBelow(error.message.length, 400)
  })

  it("has paths that can be read, whatever is in them", () =>
    fc.assert(
      fc.asyncProperty(fc.array(fc.oneof(fc.string(), fc.nat(), fc.string().map(Symbol.for))), async (path) => {
        const error = await decode(() => ({ issues: [{ message: "odd", path }] }))
        assert.instanceOf(error, InvalidBody)
        assert.isFalse(error.message.includes("\n"))
      })
    ))

  it.each([
    ["none", {}, "got an object"],
    ["of Effect", Schema.String, "With a schema of Effect, write codec: SchemaCodec.make(schema)"],
    [
      "of an old zod",
      new (class ZodObject {
        parse = () => {}
      })(),
      "Update the library that made it, to zod 3.24, valibot 1"
    ],
    ["of another version", { "~standard": { version: 2, vendor: "test", validate: () => {} } }, "Update the library"],
    ["that cannot validate", { "~standard": { version: 1, vendor: "test" } }, "Update the library"],
    ["null", null, "got null"]
  ])("that is %s is refused at once", (_, schema, remedy) => {
    assert.throws(() => Codec.standard(schema as never), RangeError, remedy)
    assert.throws(
      () => QueueDefinition.make("q", { schema: schema as never }),
      RangeError,
      "QueueDefinition.make (queue q)"
    )
  })

  it("of no vendor is taken, since nothing depends on it", () =>
    assert.strictEqual(
      Codec.standard({ "~standard": { version: 1, validate: () => ({ value: 2 }) } } as never).decode(utf8("1"), {}),
      2
    ))
})

describe("a queue's schema", () => {
  it("is short for its codec", () => {
    const { codec } = QueueDefinition.make("q", { schema: v.number() })
    assert.strictEqual(codec.decode(codec.encode(1), {}), 1)
    assert.throws(() => codec.encode("1" as never), InvalidBody)
  })

  it("does not go with a codec, and is none", () => {
    const both = () => QueueDefinition.make("q", { codec: Codec.json, schema: v.any() })
    assert.throws(both, RangeError, "give codec or schema, not both")
    const misplaced = () => QueueDefinition.make("q", { codec: z.string() as never })
    assert.throws(misplaced, RangeError, "write schema in place of codec")
    const { type } = { type: Schemas.orders.arktype }
    assert.throws(
      () => QueueDefinition.make("q", { codec: type as never }),
      RangeError,
      "write schema in place of codec"
    )
  })
})
