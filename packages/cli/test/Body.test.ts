import { deflateSync, gzipSync } from "node:zlib"
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

describe("plain", () => {
  const text = new TextEncoder().encode("a".repeat(5000))

  it.each([
    ["gzip", gzipSync(text)],
    ["GZIP", gzipSync(text)],
    ["deflate", deflateSync(text)],
    ["identity", text]
  ])("is the body before it was compressed: %s", (encoding, body) => {
    assert.deepStrictEqual(new Uint8Array(Body.plain({ body, headers: { "content-encoding": encoding } })), text)
  })

  it.each<[string, Uint8Array, Record<string, string>]>([
    ["is not what its header says", text, { "content-encoding": "gzip" }],
    ["is of an unknown encoding", text, { "content-encoding": "br" }],
    ["has no header", gzipSync(text), {}],
    ["would fill the memory", gzipSync(new Uint8Array(20 * 1024 * 1024)), { "content-encoding": "gzip" }]
  ])("is the body itself where it %s", (_, body, headers) => {
    assert.strictEqual(Body.plain({ body, headers }), body)
  })
})

it("facts of a broker print as JSON, bytes in base64", () => {
  const facts = {
    rabbitmq: { routingKey: "a", headers: { bin: Buffer.from([1]), list: [1, Uint8Array.of(2)], no: null } }
  }
  assert.deepStrictEqual(Body.plainFacts(facts), {
    rabbitmq: { routingKey: "a", headers: { bin: { base64: "AQ==" }, list: [1, { base64: "Ag==" }], no: null } }
  })
})
