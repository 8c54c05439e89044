/** What a batch handler says through the promise face, and what becomes of each message. */
import { assert, describe, it } from "@effect/vitest"
import type { Batch, Event } from "@requeue/core/promise"
import { open, turns } from "./virtualBroker.ts"

/** Runs a handler once over messages a, b and c, and answers what became of them, with the delays of retries. */
const fates = async (
  handler: (batch: Batch<string>) => unknown
): Promise<Readonly<Record<string, string | number>>> => {
  await using broker = await open()
  const fate: Record<string, string | number> = {}
  const onEvent = (event: Event): void => {
    if (event._tag === "Succeeded") fate[event.id] = "acked"
    if (event._tag === "RetryScheduled") fate[event.id] = event.delay
  }
  const batch = { maxBatchSize: 3, maxBatchTimeout: 0 }
  await broker.requeue.consumeBatch<string>("q", { batch, retryDelay: 1000, onEvent }, handler)
  await broker.requeue.sendBatch(
    "q",
    ["a", "b", "c"].map((id) => ({ id, body: id }))
  )
  await turns()
  return fate
}

describe("consumeBatch", () => {
  it("acks all when the handler ends well, retries all when it fails", async () => {
    assert.deepStrictEqual(await fates(() => {}), { a: "acked", b: "acked", c: "acked" })
    assert.deepStrictEqual(await fates(async () => {}), { a: "acked", b: "acked", c: "acked" })
    const failed = { a: 1000, b: 1000, c: 1000 }
    assert.deepStrictEqual(await fates(() => Promise.reject(new Error("no"))), failed)
  })

  it("a call on a message beats the outcome", async () => {
    const fate = await fates(({ messages: [a, b] }) => {
      a!.ack()
      b!.retry({ delay: "5 seconds" })
      throw new Error("no")
    })
    assert.deepStrictEqual(fate, { a: "acked", b: 5000, c: 1000 })
  })

  it("a call on a message beats a later call on the batch", async () => {
    const fate = await fates((batch) => {
      batch.messages[0]!.ack()
      batch.messages[1]!.retry({ delay: 5000 })
      batch.retryAll({ delay: "9 seconds" })
    })
    assert.deepStrictEqual(fate, { a: "acked", b: 5000, c: 9000 })
  })

  it("ackAll is final; a retry beats it only when it came first", async () => {
    const fate = await fates((batch) => {
      batch.messages[0]!.retry()
      batch.ackAll()
      batch.messages[1]!.retry({ delay: 5000 })
      batch.retryAll()
      throw new Error("no")
    })
    assert.deepStrictEqual(fate, { a: 1000, b: "acked", c: "acked" })
  })

  it("a message may name its own delay after retryAll, and 0 is one", async () => {
    const fate = await fates((batch) => {
      batch.retryAll({ delay: 9000 })
      batch.messages[0]!.retry({ delay: 0 })
      batch.messages[1]!.retry({ delay: 5000 })
      batch.retryAll({ delay: 3000 })
      batch.ackAll()
    })
    // The message that is retried at once comes round again, in a batch of its own that the handler retries as well.
    assert.deepStrictEqual({ b: fate["b"], c: fate["c"] }, { b: 5000, c: 9000 })
  })

  it("a call after the batch has ended is ignored, and told", async () => {
    await using broker = await open()
    const ignored: Array<string> = []
    let kept: Batch<unknown> | undefined
    const onEvent = (event: Event) => void (event._tag === "CallIgnored" && ignored.push(event.call))
    await broker.requeue.consumeBatch("q", { batch: { maxBatchSize: 1 }, onEvent }, (batch) => void (kept = batch))
    await broker.requeue.send("q", 1)
    await turns()
    kept!.retryAll()
    kept!.messages[0]!.retry({ delay: 1000 })
    kept!.ackAll()
    await turns()
    assert.deepStrictEqual(ignored, ["RetryAll", "Retry", "AckAll"])
    assert.deepStrictEqual(await broker.requeue.counts("q"), { ready: 0, inFlight: 0, delayed: 0 })
  })

  it("an ack reaches the broker while the handler is still busy", async () => {
    await using broker = await open()
    const gate = Promise.withResolvers<void>()
    await broker.requeue.consumeBatch("q", { batch: { maxBatchSize: 2 } }, async ({ messages }) => {
      messages[0]!.ack()
      await gate.promise
    })
    await broker.requeue.sendBatch("q", [{ body: 1 }, { body: 2 }])
    await turns()
    assert.deepStrictEqual(await broker.requeue.counts("q"), { ready: 0, inFlight: 1, delayed: 0 })
    gate.resolve()
    await turns()
    assert.deepStrictEqual(await broker.requeue.counts("q"), { ready: 0, inFlight: 0, delayed: 0 })
  })
})
