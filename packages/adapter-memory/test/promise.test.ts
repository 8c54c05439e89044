/** Connecting and sending through the promise face. */
import { deadLetters } from "@requeue/operations/promise"
import { assert, describe, it } from "@effect/vitest"
import { connect, queue, type Received, text } from "@requeue/core/promise"
import * as Effect from "effect/Effect"
import { MemoryBroker } from "../src/index.ts"
import { open } from "./virtualBroker.ts"

describe("connect", () => {
  it.each([
    ["a URL's text", () => "memory:"],
    ["a URL", () => new URL("memory:?maxMessages=10")],
    ["a Layer", () => MemoryBroker.layer()]
  ])("takes %s", async (_, broker) => {
    await using requeue = await connect(broker())
    assert.strictEqual(requeue.broker, "memory")
    await requeue.send("q", { hello: "world" })
    const seen = Promise.withResolvers<Received<unknown>>()
    await using _worker = await requeue.consume("q", {}, seen.resolve)
    const { attempts, body } = await seen.promise
    assert.deepStrictEqual({ attempts, body }, { attempts: 1, body: { hello: "world" } })
  })
})

describe("send", () => {
  it("answers with the given id, or makes one", async () => {
    await using broker = await open()
    assert.strictEqual(await broker.requeue.send("q", 1, { id: "mine" }), "mine")
    assert.match(await broker.requeue.send("q", 2), /^[0-9a-f-]{36}$/)
    const ids = await broker.requeue.sendBatch("q", [{ body: 3, id: "third" }, { body: 4 }])
    assert.strictEqual(ids[0], "third")
    assert.match(ids[1]!, /^[0-9a-f-]{36}$/)
    assert.deepStrictEqual(await broker.requeue.sendBatch("q", []), [])
    assert.deepStrictEqual(await broker.waiting("q"), ["1", "2", "3", "4"])
  })

  it("carries headers, and the content-type of the codec unless one is given", async () => {
    await using broker = await open()
    const lines = queue("q", { codec: text })
    await broker.requeue.send("q", {}, { headers: { tenant: "a" } })
    await broker.requeue.send(lines, "plain")
    await broker.requeue.send(lines, "a,b", { headers: { "content-type": "text/csv" } })
    const { ready } = await Effect.runPromise(broker.control.snapshot("q"))
    assert.deepStrictEqual(
      ready.map(({ headers }) => headers),
      [
        { "content-type": "application/json", tenant: "a" },
        { "content-type": "text/plain; charset=utf-8" },
        { "content-type": "text/csv" }
      ]
    )
  })

  it("the delay is the message's, else the batch's, else the queue's, else none; 0 is a delay", async () => {
    await using broker = await open()
    const slow = queue("q", { delay: "30 seconds" })
    const dues = async () => {
      const { delayed, ready } = await Effect.runPromise(broker.control.snapshot("q"))
      await deadLetters(broker.requeue, "q").purge({ all: true, force: "q" })
      return [...ready.map(() => 0), ...delayed.map(({ dueIn }) => dueIn)]
    }
    const entries = [{ body: 1 }, { body: 2, delay: "20 seconds" }, { body: 3, delay: 0 }] as const
    await broker.requeue.sendBatch(slow, entries, { delay: "10 seconds" })
    assert.deepStrictEqual(await dues(), [0, 10_000, 20_000])
    await broker.requeue.sendBatch(slow, entries)
    assert.deepStrictEqual(await dues(), [0, 20_000, 30_000])
    await broker.requeue.sendBatch(slow, entries, { delay: 0 })
    assert.deepStrictEqual(await dues(), [0, 0, 20_000])
    await broker.requeue.sendBatch("q", entries)
    assert.deepStrictEqual(await dues(), [0, 0, 20_000])
    await broker.requeue.send(slow, 1)
    assert.deepStrictEqual(await dues(), [30_000])
    await broker.requeue.send(slow, 1, { delay: 0 })
    assert.deepStrictEqual(await dues(), [0])
  })
})
