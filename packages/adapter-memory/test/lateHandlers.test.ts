/** Lines of the log about handlers that fail or go on when it is too late. */
import { assert, describe, it } from "@effect/vitest"
import type { ConsumeOptions, LoggerLike, Requeue } from "@requeue/core/promise"
import { open, turns } from "./virtualBroker.ts"

const never = () => new Promise<void>(() => {})

const logged = async () => {
  const lines: Array<readonly [string, Readonly<Record<string, unknown>>]> = []
  const warn = (message: string, fields: Readonly<Record<string, unknown>>) => void lines.push([message, fields])
  const logger = { info: () => {}, warn, error: () => {} } as LoggerLike
  const broker = await open({}, undefined, undefined, { logger })
  return { broker, lines, messages: () => lines.map(([message]) => message) }
}

describe("a drain", () => {
  const line =
    "closing: waiting up to 29s for 2 handlers. A handler must not await close or drain: that waits for the handler itself"

  it.each<readonly [string, (requeue: Requeue, options: ConsumeOptions) => Promise<() => Promise<unknown>>]>([
    [
      "drain",
      async (requeue, options) => {
        const worker = await requeue.consume("q", options, never)
        return () => worker.drain()
      }
    ],
    [
      "close",
      async (requeue, options) => {
        await requeue.consume("q", options, never)
        return () => requeue.close()
      }
    ]
  ])("by %s logs after a second what it waits for, and at its end what it cut", async (_, start) => {
    const { broker, lines, messages } = await logged()
    await using _broker = broker
    const end = await start(broker.requeue, { concurrency: 2 })
    await broker.requeue.sendBatch("q", [{ body: 1 }, { body: 2 }])
    await turns()
    const ended = end()
    await broker.advance(999)
    assert.deepStrictEqual(messages(), [])
    await broker.advance(1)
    assert.deepStrictEqual(messages(), [line])
    assert.deepInclude(lines[0]?.[1], { queue: "q", running: 2, inProgress: 2 })
    await broker.finish(ended)
    assert.strictEqual(broker.now(), 30_000)
    assert.deepStrictEqual(messages(), [
      line,
      "interrupted 2 handlers after the drain timeout of 30s: messages without a verdict return to the queue. " +
        "Pass the handler's signal to what the handler awaits, or raise drainTimeout"
    ])
    assert.deepInclude(lines[1]?.[1], { queue: "q", messages: 2 })
  })

  it("that ends within a second logs nothing", async () => {
    const { broker, messages } = await logged()
    await using _broker = broker
    const gate = Promise.withResolvers<void>()
    const worker = await broker.requeue.consume("q", {}, () => gate.promise)
    await broker.requeue.send("q", 1)
    await turns()
    const ended = worker.drain()
    await broker.advance(900)
    gate.resolve()
    assert.isTrue((await broker.finish(ended)).complete)
    assert.deepStrictEqual(messages(), [])
  })

  it("of a puller names the batches to settle", async () => {
    const { broker, messages } = await logged()
    await using _broker = broker
    const puller = await broker.requeue.puller("q", { lease: "1 hour", drainTimeout: "5 seconds" })
    await broker.requeue.send("q", 1)
    assert.strictEqual((await puller.pull())?.messages.length, 1)
    await broker.finish(puller.drain())
    assert.deepStrictEqual(messages(), [
      "closing: waiting up to 4s for 1 pulled batch. Call settle, fail or release on each",
      "ended 1 pulled batch after the drain timeout of 5s: messages without a verdict return to the queue. Settle pulled batches sooner, or raise drainTimeout"
    ])
  })
})

describe("an error after the call that settled the message", () => {
  it.each([
    [
      "ack",
      "a handler failed after ack: the message stays acked and is not retried. Call ack last, or not at all: success acks"
    ],
    ["retry", "a handler failed after retry: the retry stands"]
  ] as const)("%s: is logged, once", async (call, line) => {
    const { broker, lines, messages } = await logged()
    await using _broker = broker
    await broker.requeue.consume("q", {}, async (message) => {
      message[call](call === "retry" ? { delay: "1 hour" } : undefined)
      throw new Error("too late")
    })
    await broker.requeue.sendBatch("q", [{ body: 1 }, { body: 2 }])
    await turns()
    assert.deepStrictEqual(messages(), [`${line}; further ones are not logged`])
    assert.deepInclude(lines[0]?.[1], { queue: "q", attempts: 1, errorName: "Error", errorMessage: "too late" })
    assert.deepStrictEqual(await broker.waiting("q"), [])
    assert.strictEqual((await broker.requeue.counts("q")).delayed, call === "retry" ? 2 : 0)
  })

  it("in a batch of which other messages are retried is the error of those", async () => {
    const { broker, messages } = await logged()
    await using _broker = broker
    await broker.requeue.consumeBatch("q", { batch: { maxBatchSize: 2 }, retryDelay: "1 hour" }, async (batch) => {
      batch.messages[0]?.ack()
      throw new Error("the second one")
    })
    await broker.requeue.sendBatch("q", [{ body: 1 }, { body: 2 }])
    await turns()
    assert.deepStrictEqual(messages(), ["a handler failed"])
    assert.strictEqual((await broker.requeue.counts("q")).delayed, 1)
  })
})
