import { Codec } from "@requeue/core"
import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import { deflateRawSync, deflateSync, gzipSync } from "node:zlib"
import * as CompressedCodec from "../src/CompressedCodec.ts"

const utf8 = (text: string) => new TextEncoder().encode(text)
const failure = async (decoded: unknown): Promise<string> =>
  Promise.resolve(decoded).then(
    (value) => assert.fail(`decoded: ${String(value)}`),
    (error: unknown) => String(error)
  )

describe.each([
  ["gzip", CompressedCodec.gzip],
  ["deflate", CompressedCodec.deflate]
])("%s", (encoding, make) => {
  const bytes = make(Codec.bytes)
  const headers = { "content-encoding": encoding }

  it("gives back any bytes", () =>
    fc.assert(
      fc.asyncProperty(fc.uint8Array({ maxLength: 5000, size: "max" }), async (body) => {
        assert.deepStrictEqual(await bytes.decode(bytes.encode(body), headers), body)
      })
    ))

  it("makes what repeats itself smaller, and says how", () => {
    assert.isBelow(make(Codec.json).encode(Array.from({ length: 1000 }, () => "order")).length, 200)
    assert.deepInclude(make(Codec.json), { contentEncoding: encoding, contentType: "application/json" })
  })

  it("reads what others have compressed in either way, and what is not compressed", async () => {
    const text = make(Codec.text)
    const [a, b] = [utf8("ab".repeat(100)), "ab".repeat(100)]
    assert.strictEqual(await text.decode(gzipSync(a), { "content-encoding": "gzip" }), b)
    assert.strictEqual(
      await text.decode(Buffer.concat([gzipSync(a), gzipSync(a)]), { "content-encoding": "GZIP" }),
      b + b
    )
    assert.strictEqual(await text.decode(deflateSync(a), { "content-encoding": "deflate" }), b)
    assert.strictEqual(await text.decode(a, { "content-encoding": "identity" }), b)
    assert.strictEqual(await text.decode(a, {}), b)
    assert.strictEqual(await text.decode(a, { "content-encoding": "" }), b)
    assert.strictEqual(await text.decode(gzipSync(a), { "content-encoding": "x-gzip" }), b)
  })

  it("refuses what it cannot read", async () => {
    const whole = bytes.encode(utf8("x".repeat(100)))
    assert.include(await failure(bytes.decode(whole.subarray(0, -3), headers)), "unexpected end of file")
    assert.include(await failure(bytes.decode(utf8("plain"), headers)), "incorrect header check")
    assert.include(await failure(bytes.decode(new Uint8Array(), headers)), "unexpected end of file")
    assert.include(await failure(bytes.decode(deflateRawSync(utf8("x")), { "content-encoding": "deflate" })), "Error")
    const unknown = failure(bytes.decode(whole, { "content-encoding": "br" }))
    assert.include(await unknown, `CompressedCodec.${encoding}: content-encoding must be gzip or deflate, got br`)
  })

  it("takes no body beyond its limit, on either way", async () => {
    const small = make(Codec.bytes, { maxSize: 1000 })
    const message = `CompressedCodec.${encoding}: body must have at most 1000 bytes. Raise maxSize`
    assert.throws(() => small.encode(new Uint8Array(1001)), RangeError, message)
    assert.include(await failure(small.decode(bytes.encode(new Uint8Array(1001)), headers)), message)
    assert.lengthOf(await small.decode(small.encode(new Uint8Array(1000)), headers), 1000)
    // Five kilobytes that would be five megabytes.
    const bomb = bytes.encode(new Uint8Array(5 * 1024 * 1024))
    assert.isBelow(bomb.length, 10_000)
    assert.include(await failure(small.decode(bomb, headers)), message)
  })

  it("shares no bytes with a codec that keeps them", async () => {
    const kept = new Uint8Array([1, 2, 3])
    const own: Codec.Codec<Uint8Array> = { contentType: undefined, encode: () => kept, decode: (given) => given }
    const compressed = make(own)
    const sent = compressed.encode(kept)
    assert.deepStrictEqual(await compressed.decode(sent, headers), kept)
    const broken = { ...own, encode: () => "text" } as unknown as Codec.Codec<Uint8Array> // on purpose
    assert.throws(() => make(broken).encode(kept), TypeError, "must return a Uint8Array")
  })

  it("is not compressed twice: one header cannot say both", () => {
    const message = "codec must not be compressed, got one with gzip"
    assert.throws(() => make(CompressedCodec.gzip(Codec.json)), RangeError, message)
  })

  it.each([{ maxSize: 0 }, { maxSize: "1" }, { maxsize: 1 }, null])("refuses the options %j", (options) => {
    const wrong = options as CompressedCodec.Options // on purpose
    assert.throws(() => make(Codec.bytes, wrong), RangeError, `CompressedCodec.${encoding}: `)
  })
})
