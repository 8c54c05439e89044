/** Handlers of the other kind: of batches where a consumer gives messages, and of messages where it gives batches. */
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
