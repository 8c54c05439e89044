/** Handlers of the other kind, and consumers of one queue that disagree. */
import { assert, describe, expect, it, vi } from "@effect/vitest"
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
    assert.strictEqual(await broker.requeue.deadLetters("q.dlq").count(), 0)
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
})

describe("two consumers of one queue", () => {
  it.each([
    ["other dead-letter queues are a warning", "elsewhere", 1],
    ["the same ones are none", undefined, 0]
  ])("%s", async (_, deadLetter, warnings) => {
    const warn = vi.spyOn(console, "error").mockImplementation(() => {})
    try {
      await using broker = await open({}, (original) => original, "Warn")
      await broker.requeue.consume("q", {}, () => {})
      await broker.requeue.consume("q", { retry: deadLetter === undefined ? {} : { deadLetter } }, () => {})
      assert.strictEqual(warn.mock.calls.length, warnings)
      for (const call of warn.mock.calls) assert.match(String(call), /different dead-letter queues.*elsewhere.*q\.dlq/)
    } finally {
      warn.mockRestore()
    }
  })

  it("one that has been drained counts no more", async () => {
    const warn = vi.spyOn(console, "error").mockImplementation(() => {})
    try {
      await using broker = await open({}, (original) => original, "Warn")
      const first = await broker.requeue.consume("q", {}, () => {})
      await broker.finish(first.drain())
      await broker.requeue.consume("q", { retry: { deadLetter: "elsewhere" } }, () => {})
      assert.strictEqual(warn.mock.calls.length, 0)
    } finally {
      warn.mockRestore()
    }
  })
})
