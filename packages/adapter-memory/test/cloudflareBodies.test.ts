/** The content types of Cloudflare Queues, out and in. */
import { deadLetters } from "@requeue/operations/promise"
import { assert, describe, it } from "@effect/vitest"
import * as Cloudflare from "@requeue/cloudflare"
import { EncodeError } from "@requeue/core/promise"
import * as Effect from "effect/Effect"
import { bytes } from "./harness.ts"
import { open, turns, type VirtualBroker } from "./virtualBroker.ts"

/** The bodies that a worker gets of what waits in the queue. */
const received = async (broker: VirtualBroker): Promise<ReadonlyArray<unknown>> => {
  const seen: Array<unknown> = []
  const worker: Cloudflare.QueueWorker = { queue: ({ messages }) => void seen.push(...messages.map((m) => m.body)) }
  await Cloudflare.consume(broker.requeue, { queue: "q", max_batch_timeout: 0 }, worker, {})
  await turns()
  return seen
}

const buffer = (...values: ReadonlyArray<number>): ArrayBuffer => new Uint8Array(values).buffer

describe("a body", () => {
  it.each<readonly [Cloudflare.QueueContentType, unknown, unknown, string]>([
    ["json", { a: [1, null, "x"] }, { a: [1, null, "x"] }, "application/json"],
    ["text", "héllo ✓ \uFEFF", "héllo ✓ \uFEFF", "text/plain; charset=utf-8"],
    ["text", "", "", "text/plain; charset=utf-8"],
    ["bytes", buffer(0, 255, 128), buffer(0, 255, 128), "application/octet-stream"],
    ["bytes", new Uint8Array([9, 1, 2, 9]).subarray(1, 3), buffer(1, 2), "application/octet-stream"],
    ["bytes", new DataView(buffer(1, 2, 3), 1), buffer(2, 3), "application/octet-stream"],
    ["v8", new Map([["a", new Date(5)]]), new Map([["a", new Date(5)]]), "application/x-v8-structured-clone"],
    ["v8", 12n, 12n, "application/x-v8-structured-clone"]
  ])("of type %s arrives as it was sent: %o", async (contentType, sent, expected, mediaType) => {
    await using broker = await open()
    const queue = Cloudflare.producer(broker.requeue, "q")
    await queue.send(sent, { contentType })
    await queue.sendBatch([{ body: sent, contentType }])
    const { ready } = await Effect.runPromise(broker.control.snapshot("q"))
    assert.deepStrictEqual(
      ready.map(({ headers }) => headers["content-type"]),
      [mediaType, mediaType]
    )
    assert.deepStrictEqual(await received(broker), [expected, expected])
  })

  it("is JSON unless its type is given; types may be mixed in a batch", async () => {
    await using broker = await open()
    const queue = Cloudflare.producer(broker.requeue, "q")
    await queue.send("text as JSON")
    await queue.sendBatch([{ body: { a: 1 } }, { body: "plain", contentType: "text" }])
    assert.deepStrictEqual(await broker.waiting("q"), [`"text as JSON"`, `{"a":1}`, "plain"])
    assert.deepStrictEqual(await received(broker), ["text as JSON", { a: 1 }, "plain"])
  })

  it("of a foreign producer is JSON when nothing is said, bytes when its type is unknown", async () => {
    await using broker = await open()
    const publish = (body: string, headers: Readonly<Record<string, string>>) =>
      Effect.runPromise(broker.control.publishRaw("q", bytes(body), headers))
    await publish(`{"a":1}`, {})
    await publish(`{"a":2}`, { "content-type": "application/json; charset=utf-8" })
    await publish("<a/>", { "content-type": "application/xml" })
    assert.deepStrictEqual(await received(broker), [{ a: 1 }, { a: 2 }, bytes("<a/>").buffer])
  })

  it("that cannot be read is dead-lettered with its bytes, and no worker sees it", async () => {
    await using broker = await open()
    const broken = new Uint8Array([0xff, 0x00, 0x7b])
    for (const type of ["application/json", "text/plain", "application/x-v8-structured-clone"]) {
      await Effect.runPromise(broker.control.publishRaw("q", broken, { "content-type": type }))
    }
    assert.deepStrictEqual(await received(broker), [])
    const letters = await deadLetters(broker.requeue, "q.dlq").list()
    for (const { body, origin } of letters) {
      assert.deepStrictEqual(body, broken)
      assert.strictEqual(origin?.reason, "undecodable")
    }
    assert.strictEqual(letters.length, 3)
  })

  it("whose arrays claim more than its bytes can fill is dead-lettered, and costs nothing", async () => {
    await using broker = await open()
    // A sparse array of 33,554,431 places, for which V8 takes 270 MB.
    const claim = new Uint8Array([0xff, 0x0f, 0x61, 0xff, 0xff, 0xff, 0x0f, 0x40, 0, 0xff, 0xff, 0xff, 0x0f])
    await Effect.runPromise(
      broker.control.publishRaw("q", claim, { "content-type": "application/x-v8-structured-clone" })
    )
    assert.deepStrictEqual(await received(broker), [])
    const [letter] = await deadLetters(broker.requeue, "q.dlq").list()
    assert.deepStrictEqual(letter?.body, claim)
    assert.match(letter!.origin!.error.message, /v8: arrays with more elements than the bytes can hold/)
  })

  it.each<readonly [unknown, string, RegExp]>([
    [() => {}, "json", /body: .*a function, which has no JSON form/],
    [5, "text", /body: .*contentType "text" must be a string, got number/],
    ["abc", "bytes", /body: .*contentType "bytes" must be an ArrayBuffer or a view of one, got string/],
    [null, "bytes", /body: .*got null/],
    [() => {}, "v8", /body: .*could not be cloned/],
    ["x", "xml", /body: .*contentType must be one of text, bytes, json, v8, got "xml"/]
  ])("%o is refused as %s", async (body, contentType, pattern) => {
    await using broker = await open()
    const queue = Cloudflare.producer(broker.requeue, "q")
    const options = { contentType: contentType as Cloudflare.QueueContentType }
    const error = await queue.send(body, options).catch((error: unknown) => error)
    assert.instanceOf(error, EncodeError)
    assert.match(String(error), pattern)
    assert.deepStrictEqual(await broker.waiting("q"), [])
  })
})
