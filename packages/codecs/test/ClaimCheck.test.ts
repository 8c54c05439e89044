import { Codec, type Message } from "@requeue/core"
import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import * as ClaimCheck from "../src/ClaimCheck.ts"
import * as CompressedCodec from "../src/CompressedCodec.ts"

const memory = () => {
  const bodies = new Map<string, Uint8Array>()
  const store: ClaimCheck.Store = {
    name: "memory",
    put: async (bytes) => {
      const key = `k${bodies.size}`
      bodies.set(key, new Uint8Array(bytes))
      return key
    },
    get: async (key) => bodies.get(key)
  }
  return { bodies, store }
}

const seal = async <A>(codec: Codec.Codec<A>, body: A, headers: Message.Headers = {}) =>
  Codec.encodeMessage(codec, body, { headers, native: undefined })

const failure = async (run: () => unknown): Promise<unknown> => {
  try {
    await run()
  } catch (error) {
    return error
  }
  return assert.fail("it did not fail")
}

const claim = { "requeue-claim": "1" }
const pointerTo = (key: unknown) => Codec.json.encode({ key })

describe("a claim check", () => {
  it("gives back any body with its headers, and stores those beyond the threshold alone", () =>
    fc.assert(
      fc.asyncProperty(
        fc.uint8Array({ maxLength: 100 }),
        fc.dictionary(fc.string(), fc.string()),
        fc.nat({ max: 100 }),
        async (body, headers, threshold) => {
          const { bodies, store } = memory()
          const codec = ClaimCheck.make(Codec.bytes, { store, threshold })
          const sealed = await seal(codec, body, { ...headers, ...claim })
          assert.strictEqual(bodies.size, body.length > threshold ? 1 : 0)
          assert.strictEqual(sealed.headers["requeue-claim"], body.length > threshold ? "1" : undefined)
          assert.deepStrictEqual(await Codec.decodeMessage(codec, sealed.body, sealed.headers), { body, headers })
          assert.deepStrictEqual(await codec.decode(sealed.body, sealed.headers), body)
        }
      )
    ))

  it("encodes and decodes small bodies at once", () => {
    const codec = ClaimCheck.make(Codec.text, { store: memory().store, threshold: 2 })
    assert.deepStrictEqual(Codec.decodeMessage(codec, codec.encode("ab"), {}), { body: "ab", headers: {} })
    assert.deepInclude(Codec.encodeMessage(codec, "ab", { headers: {}, native: undefined }), { headers: {} })
    assert.throws(() => codec.encode("abc"), TypeError, "Call encodeMessage instead of encode")
  })

  it("goes around compression, and into it", async () => {
    const { bodies, store } = memory()
    const body = "a".repeat(10_000)
    const outside = ClaimCheck.make(CompressedCodec.gzip(Codec.text), { store, threshold: 10 })
    const encoded = { "content-encoding": "gzip" }
    const sealed = await seal(outside, body, encoded)
    assert.isBelow(bodies.get("k0")!.length, 100)
    assert.deepStrictEqual(await Codec.decodeMessage(outside, sealed.body, sealed.headers), { body, headers: encoded })
    const inside = CompressedCodec.gzip(ClaimCheck.make(Codec.text, { store, threshold: 10 }))
    const { body: bytes, headers } = await seal(inside, body, encoded)
    assert.isBelow(bytes.length, 100)
    assert.deepInclude(await Codec.decodeMessage(inside, bytes, headers), { body })
    assert.lengthOf(bodies, 2)
  })

  it("says which body is lost, for good unless told otherwise", async () => {
    const { store } = memory()
    const lost = await failure(() => ClaimCheck.make(Codec.text, { store }).decode(pointerTo("gone"), claim))
    assert.instanceOf(lost, ClaimCheck.LostBodyError)
    assert.deepInclude(lost, { store: "memory", key: "gone", permanent: true })
    assert.include(lost.message, "memory has no body under gone")
    const patient = ClaimCheck.make(Codec.text, { store, lost: "retry" })
    assert.deepInclude(await failure(() => patient.decode(pointerTo("gone"), claim)), { permanent: false })
  })

  it.each([
    [new Error("down"), false],
    [Object.assign(new Error("never"), { permanent: true }), true],
    [new TypeError(), false]
  ])("lets a store that fails with %s decide whether that is for good: %s", async (cause, permanent) => {
    const broken = async () => {
      throw cause
    }
    const codec = ClaimCheck.make(Codec.text, { store: { name: "broken", put: broken, get: broken }, threshold: 0 })
    const [put, get] = [await failure(() => seal(codec, "a")), await failure(() => codec.decode(pointerTo("k"), claim))]
    assert.instanceOf(put, ClaimCheck.StoreError)
    assert.instanceOf(get, ClaimCheck.StoreError)
    assert.deepInclude(put, { operation: "put", store: "broken", key: undefined, cause, permanent })
    assert.deepInclude(get, { operation: "get", store: "broken", key: "k", cause, permanent })
    assert.include(get.message, "ClaimCheck: get k in broken: ")
  })

  it("sends no pointer to nowhere, and bears a store that throws", async () => {
    const put: () => Promise<string> = async () => Reflect.get({}, "no key")
    const get = () => {
      throw new Error("at once")
    }
    const codec = ClaimCheck.make(Codec.text, { store: { name: "odd", put, get }, threshold: 0 })
    const error = await failure(() => seal(codec, "a"))
    assert.instanceOf(error, ClaimCheck.StoreError)
    assert.include(error.message, "put must return a key, got undefined")
    assert.instanceOf(await failure(() => codec.decode(pointerTo("k"), claim)), ClaimCheck.StoreError)
  })

  it("throws nothing but its own error, whatever a pointer holds", () =>
    fc.assert(
      fc.asyncProperty(
        fc.oneof(fc.json(), fc.string(), fc.constant('{"__proto__":{"key":"k"}}')),
        fc.constantFrom("1", "2", ""),
        async (text, version) => {
          const codec = ClaimCheck.make(Codec.bytes, { store: memory().store })
          const error = await failure(() => codec.decode(new TextEncoder().encode(text), { "requeue-claim": version }))
          const isLost = error instanceof ClaimCheck.LostBodyError
          assert.isTrue(isLost || error instanceof ClaimCheck.InvalidPointerError, String(error))
          if (isLost) assert.include(text, '"key"')
        }
      )
    ))

  it.each([{}, { store: {} }, { store: memory().store, threshold: -1 }, { store: memory().store, lost: "never" }])(
    "refuses the options %j",
    (options) => {
      const wrong = options as ClaimCheck.Options // on purpose
      assert.throws(() => ClaimCheck.make(Codec.text, wrong), RangeError, "ClaimCheck.make: ")
    }
  )
})
