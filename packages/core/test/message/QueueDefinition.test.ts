import { assert, describe, it } from "@effect/vitest"
import * as Codec from "../../src/message/Codec.ts"
import * as QueueDefinition from "../../src/message/QueueDefinition.ts"

describe("QueueDefinition", () => {
  it("has these defaults", () =>
    assert.deepStrictEqual(QueueDefinition.make("work"), { name: "work", codec: Codec.json, delay: undefined }))

  it("keeps what is given, a delay of 0 included", () => {
    const codec = Codec.text
    assert.deepStrictEqual(QueueDefinition.make("work", { codec, delay: 0 }), { name: "work", codec, delay: 0 })
    assert.strictEqual(QueueDefinition.make("work", { delay: "1 minute" }).delay, 60_000)
  })

  it("is a queue's name, too", () => {
    const work = QueueDefinition.make("work")
    assert.strictEqual(QueueDefinition.from(work), work)
    assert.deepStrictEqual(QueueDefinition.from("work"), work)
  })

  it("guards the bytes of a codec once", () => {
    const codec = { ...Codec.bytes, decode: (bytes: Uint8Array) => bytes }
    const guarded = QueueDefinition.from({ name: "work", codec, delay: undefined })
    assert.notStrictEqual(guarded.codec, codec)
    assert.strictEqual(QueueDefinition.from(guarded), guarded)
  })

  it.each(["", "q".repeat(201)])("refuses the name %j", (name) =>
    assert.throws(
      () => QueueDefinition.make(name),
      RangeError,
      "QueueDefinition.make: name must have 1 to 200 characters"
    )
  )

  it("refuses broken surrogates: in UTF-8, several such names are one", () =>
    assert.throws(
      () => QueueDefinition.from("lo\ud800op"),
      RangeError,
      'QueueDefinition.from: queue must have no broken surrogates, got "lo\\ud800op"'
    ))

  it.each([-1, Number.NaN, "25 hours" as const])("refuses a delay of %s", (delay) =>
    assert.throws(
      () => QueueDefinition.make("work", { delay }),
      RangeError,
      "QueueDefinition.make (queue work): delay must be"
    )
  )

  it("refuses a schema whose getter throws", () => {
    const schema = {
      get "~standard"(): never {
        throw new Error("getter")
      }
    }
    assert.throws(
      () => QueueDefinition.make("work", { schema }),
      RangeError,
      "QueueDefinition.make (queue work): schema must be a Standard Schema"
    )
  })
})
