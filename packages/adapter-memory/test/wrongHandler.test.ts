/** Handlers of the other kind: of batches where a consumer gives messages, and of messages where it gives batches. */
import { inspect } from "node:util"
import { deadLetters } from "@requeue/operations/promise"
import { assert, describe, expect, it } from "@effect/vitest"
import { open, turns } from "./virtualBroker.ts"

describe("a handler of the other kind", () => {
  it("of batches, given to consume: the consumer stops, and no message is given up", async () => {
    await using broker = await open()
    const handler: any = async ({ messages }: any) => {
      // any: TypeScript refuses it
      for (const message of messages) message.ack()
    }
    const worker = await broker.requeue.consume("q", {}, handler)
    await broker.requeue.sendBatch("q", [{ body: 1 }, { body: 2 }])
    await turns()
    await expect(broker.finish(worker.done())).rejects.toThrow(/reads message\.messages.*Use consumeBatch/)
    assert.deepStrictEqual((await broker.waiting("q")).toSorted(), ["1", "2"])
    assert.strictEqual(await deadLetters(broker.requeue, "q.dlq").count(), 0)
  })

  it("of messages, given to consumeBatch: the consumer stops, and no message is acked", async () => {
    await using broker = await open()
    const handler: any = ({ body }: any) => body // any: TypeScript refuses it
    const worker = await broker.requeue.consumeBatch("q", {}, handler)
    await broker.requeue.sendBatch("q", [{ body: 1 }, { body: 2 }])
    await turns()
    await expect(broker.finish(worker.done())).rejects.toThrow(/reads batch\.body.*Use consume/)
    assert.deepStrictEqual((await broker.waiting("q")).toSorted(), ["1", "2"])
  })

  type Use = readonly ["consume" | "consumeBatch", string, (received: any) => unknown, RegExp] // any: TypeScript refuses it
  it.each<Use>([
    ["consumeBatch", "its length", (batch) => batch.length, /uses batch\.length, .*Write batch\.messages\.length/],
    ["consumeBatch", "its first", (batch) => batch[0].body, /uses batch\[0\], .*Write batch\.messages\[0\]/],
    ["consumeBatch", "map", (batch) => batch.map(() => 1), /uses batch\.map\(\), .*Write batch\.messages\.map\(\)/],
    ["consumeBatch", "forEach", (batch) => batch.forEach(() => {}), /Write batch\.messages\.forEach\(\)/],
    ["consumeBatch", "filter", (batch) => batch.filter(() => true), /Write batch\.messages\.filter\(\)/],
    ["consumeBatch", "a spread", (batch) => [...batch], /uses batch\[Symbol\.iterator\]\(\), /],
    [
      "consume",
      "its length",
      (message) => message.length,
      /uses message\.length, .*Read message\.body, or use consumeBatch/
    ],
    ["consume", "a spread", (message) => [...message], /uses message\[Symbol\.iterator\]\(\), /]
  ])(
    "of %s that takes what it gets for an array, by %s: the consumer stops, nothing is acked",
    async (start, _, use, text) => {
      await using broker = await open()
      const handler: any = async (received: any) => void use(received) // any: TypeScript refuses it
      const worker = await broker.requeue[start]("q", { retry: { maxRetries: 0 } }, handler)
      await broker.requeue.sendBatch("q", [{ body: 1 }, { body: 2 }, { body: 3 }])
      await turns()
      await expect(broker.finish(worker.done())).rejects.toThrow(text)
      assert.deepStrictEqual((await broker.waiting("q")).toSorted(), ["1", "2", "3"])
      assert.strictEqual(await deadLetters(broker.requeue, "q.dlq").count(), 0)
    }
  )

  it("prints, copies and serializes what it gets without harm", async () => {
    await using broker = await open()
    const seen: Array<string> = []
    const handler = (received: object) => {
      seen.push(inspect(received, { getters: true, showHidden: true }), JSON.stringify({ ...received }))
      structuredClone({ ...received, messages: [], ackAll: null, retryAll: null, within: null })
    }
    await broker.requeue.consume("q", {}, handler)
    await broker.requeue.consumeBatch("batches", { batch: { maxBatchTimeout: 0 } }, handler)
    await broker.requeue.send("q", "one")
    await broker.requeue.send("batches", "two")
    await turns()
    assert.strictEqual(seen.length, 4)
    assert.include(seen.join(), "one")
    assert.include(seen.join(), "two")
    assert.deepStrictEqual([await broker.waiting("q"), await broker.waiting("batches")], [[], []])
  })

  it.each([
    ["consume", "ackAll"],
    ["consume", "retryAll"],
    ["consumeBatch", "ack"],
    ["consumeBatch", "retry"],
    ["consumeBatch", "fail"]
  ] as const)("given to %s, which calls only %s: the consumer stops at the first message", async (start, method) => {
    await using broker = await open()
    const handler: any = async (received: any) => received[method]() // any: TypeScript refuses it
    const worker = await broker.requeue[start]("q", { retry: { maxRetries: 0 } }, handler)
    await broker.requeue.sendBatch("q", [{ body: 1 }, { body: 2 }, { body: 3 }])
    await turns()
    await expect(broker.finish(worker.done())).rejects.toThrow(
      new RegExp(`reads (message|batch)\\.${method}, but gets`)
    )
    assert.deepStrictEqual((await broker.waiting("q")).toSorted(), ["1", "2", "3"])
    assert.strictEqual(await deadLetters(broker.requeue, "q.dlq").count(), 0)
  })
})
