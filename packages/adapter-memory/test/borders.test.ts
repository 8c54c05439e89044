/** Nobody who holds on to a body or to headers changes a message with them: neither its sender, nor a handler, nor an operator. */
import { deadLetters } from "@requeue/operations/promise"
import { assert, describe, it } from "@effect/vitest"
import { Codec, type QueueDefinition } from "@requeue/core"
import * as Cloudflare from "@requeue/cloudflare"
import { EncodeError, queue as define } from "@requeue/core/promise"
import * as Effect from "effect/Effect"
import { runInNewContext } from "node:vm"
import { open, turns, type VirtualBroker } from "./virtualBroker.ts"

const sent = [1, 2, 3, 4, 5, 6, 7, 8]

/** Answers the very bytes that it is given, as codecs of binary formats may do for a part of a message. */
const identity: Codec.Codec<Uint8Array> = { contentType: undefined, encode: (body) => body, decode: (body) => body }

const fresh = () => new Uint8Array(sent)

/** Changes all bytes of what is given. */
const overwrite = (body: ArrayBufferLike | ArrayBufferView): void => {
  const view = ArrayBuffer.isView(body)
    ? new Uint8Array(body.buffer, body.byteOffset, body.byteLength)
    : new Uint8Array(body)
  view.fill(0)
}

const frozenOrNot = (change: () => unknown): void => {
  try {
    change()
  } catch (error) {
    assert.instanceOf(error, TypeError)
  }
}

const storedBytes = async (broker: VirtualBroker, queue: string) =>
  (await deadLetters(broker.requeue, queue).list()).map(({ body }) => [...body])

describe("a sender that writes into what it has sent", () => {
  const sources: ReadonlyArray<readonly [string, () => ArrayBuffer | ArrayBufferView<ArrayBuffer>]> = [
    ["an ArrayBuffer", () => fresh().buffer],
    ["a typed array", fresh],
    ["a part of one", () => new Uint8Array([0, ...sent, 0]).subarray(1, 9)],
    ["wider elements", () => new Uint32Array(fresh().buffer)],
    ["a DataView", () => new DataView(fresh().buffer)],
    ["a Buffer of Node's pool", () => Buffer.from(sent)]
  ]

  it.each(sources)("through Cloudflare's bytes, %s, changes nothing", async (_, make) => {
    await using broker = await open()
    const queue = Cloudflare.producer(broker.requeue, "q")
    const [one, two] = [make(), make()]
    await queue.send(one, { contentType: "bytes" })
    await queue.sendBatch([{ body: two, contentType: "bytes" }])
    overwrite(one)
    overwrite(two)
    assert.deepStrictEqual(await storedBytes(broker, "q"), [sent, sent])
  })

  it.each([
    ["bytes", Codec.bytes],
    ["a codec that answers what it is given", identity]
  ])("through %s changes nothing", async (_, codec) => {
    await using broker = await open()
    const [one, two, large] = [fresh(), Buffer.from(sent), new Uint8Array(5000).fill(7)]
    await broker.requeue.send(define("q", { codec }), one)
    await broker.requeue.sendBatch(define("q", { codec }), [{ body: two }, { body: large }])
    for (const body of [one, two, large]) overwrite(body)
    assert.deepStrictEqual(await storedBytes(broker, "q"), [sent, sent, Array.from({ length: 5000 }, () => 7)])
  })

  it("through headers changes nothing", async () => {
    await using broker = await open()
    const headers: Record<string, string> = { tenant: "a" }
    await broker.requeue.send("q", 1, { headers })
    await broker.requeue.send(define("q", { codec: identity }), fresh(), { headers })
    headers["tenant"] = "b"
    const letters = await deadLetters(broker.requeue, "q").list()
    assert.deepStrictEqual(
      letters.map((letter) => letter.headers),
      [{ "content-type": "application/json", tenant: "a" }, { tenant: "a" }]
    )
  })

  it("behind the port changes nothing", async () => {
    await using broker = await open()
    const [body, headers] = [fresh(), { tenant: "a" }]
    await Effect.runPromise(broker.control.publishRaw("q", body, headers))
    overwrite(body)
    headers.tenant = "b"
    const [letter] = await deadLetters(broker.requeue, "q").list()
    assert.deepStrictEqual([[...letter!.body], letter!.headers], [sent, { tenant: "a" }])
  })
})

describe("a handler that writes into its message", () => {
  const media = { bytes: "application/octet-stream", v8: "application/x-v8-structured-clone" }
  const queues: ReadonlyArray<readonly [string, QueueDefinition.QueueDefinition<any>]> = [
    ["bytes", define("q", { codec: Codec.bytes })],
    ["a codec that answers what it is given", define("q", { codec: identity })],
    ["a definition that was written by hand", { name: "q", codec: identity, delay: undefined }]
  ]

  it.each(queues)("of %s changes neither the next attempt nor the dead letter", async (_, queue) => {
    await using broker = await open()
    const seen: Array<unknown> = []
    await broker.requeue.consume(queue, { retry: { maxRetries: 2 } }, ({ body, headers }) => {
      seen.push([[...(body as Uint8Array)], { ...headers }["tenant"]]) // All of these codecs are of bytes.
      overwrite(body)
      frozenOrNot(() => Object.assign(headers, { tenant: "b" }))
      throw new Error("no")
    })
    await broker.requeue.send(queue, fresh(), { headers: { tenant: "a" } })
    await turns()
    assert.deepStrictEqual(
      seen,
      [1, 2, 3].map(() => [sent, "a"])
    )
    const [letter] = await deadLetters(broker.requeue, "q.dlq").list()
    assert.deepStrictEqual([[...letter!.body], letter!.headers["tenant"]], [sent, "a"])
  })

  it("of a foreign sender changes not its headers", async () => {
    await using broker = await open()
    const seen: Array<unknown> = []
    await broker.requeue.consume("q", { retry: { maxRetries: 1 } }, ({ headers }) => {
      seen.push(headers["tenant"])
      frozenOrNot(() => Object.assign(headers, { tenant: "b" }))
      throw new Error("no")
    })
    await Effect.runPromise(broker.control.publishRaw("q", new TextEncoder().encode("1"), { tenant: "a" }))
    await turns()
    const [letter] = await deadLetters(broker.requeue, "q.dlq").list()
    assert.deepStrictEqual([seen, letter!.headers["tenant"]], [["a", "a"], "a"])
  })

  it.each(["bytes", "v8"] as const)("of Cloudflare's %s changes neither", async (contentType) => {
    await using broker = await open()
    const seen: Array<unknown> = []
    const worker: Cloudflare.QueueWorker<any> = {
      queue: ({ messages: [message] }) => {
        const { body } = message!
        seen.push([...new Uint8Array(body)])
        overwrite(body)
        message!.retry()
      }
    }
    await Cloudflare.consume(broker.requeue, { queue: "q", max_retries: 1, max_batch_timeout: 0 }, worker, {})
    await Cloudflare.producer(broker.requeue, "q").send(fresh(), { contentType })
    await turns()
    assert.deepStrictEqual(seen, [sent, sent])
    const [letter] = await deadLetters(broker.requeue, "q.dlq").list()
    assert.strictEqual(letter!.headers["content-type"], media[contentType])
    assert.deepStrictEqual([...letter!.body].slice(-8), sent)
  })
})

it("an operator that writes into a listed letter changes nothing", async () => {
  await using broker = await open()
  const queue = define("q", { codec: Codec.bytes })
  await broker.requeue.consume(queue, { retry: { maxRetries: 1 } }, () => Promise.reject(new Error("no")))
  await broker.requeue.send(queue, fresh(), { headers: { tenant: "a" } })
  await turns()
  const list = async () => (await deadLetters(broker.requeue, "q.dlq").list())[0]!
  const before = structuredClone(await list())
  const letter: any = await list() // Any, because a program in JavaScript may write anywhere.
  overwrite(letter.body)
  for (const change of [
    () => (letter.headers.tenant = "b"),
    () => letter.history.push(letter.history[0]),
    () => (letter.history[0].error = "x"),
    () => (letter.origin.reason = "x"),
    () => (letter.origin.error.message = "x")
  ]) {
    frozenOrNot(change)
  }
  assert.deepStrictEqual(await list(), before)
})

it.each<readonly [string, unknown]>([
  ["text", "abc"],
  ["nothing", undefined],
  ["numbers", [1, 2]],
  ["an ArrayBuffer", new ArrayBuffer(2)]
])("a codec that answers %s, and no bytes, fails the send", async (_, answer) => {
  await using broker = await open()
  const codec: Codec.Codec<any> = { ...Codec.text, encode: () => answer as Uint8Array }
  const error = await broker.requeue.send(define("q", { codec }), 1).catch((e: unknown) => e)
  assert.instanceOf(error, EncodeError)
  assert.match(error.message, /send to queue q: body: TypeError: codec.encode must return a Uint8Array, got /)
  assert.deepStrictEqual(await broker.waiting("q"), [])
})

it("a codec whose encode is async fails the send, which says how", async () => {
  await using broker = await open()
  const encode = async () => Promise.reject(new Error("also when the promise rejects"))
  const codec: Codec.Codec<any> = { ...Codec.text, encode: encode as never }
  const error = await broker.requeue.send(define("q", { codec }), 1).catch((e: unknown) => e)
  assert.instanceOf(error, EncodeError)
  assert.match(
    error.message,
    /must return a Uint8Array, got a promise\. Make encode return bytes synchronously, or write an async encodeMessage$/
  )
})

it("bytes of another realm are bytes", async () => {
  await using broker = await open()
  const codec: Codec.Codec<any> = { ...identity, encode: () => runInNewContext("new Uint8Array([1, 2])") as Uint8Array }
  await broker.requeue.send(define("q", { codec }), 1)
  assert.deepStrictEqual(await storedBytes(broker, "q"), [[1, 2]])
})
