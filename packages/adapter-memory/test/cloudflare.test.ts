/** A Cloudflare worker's queue handler on the memory broker. */
import { assert, describe, it } from "@effect/vitest"
import * as Cloudflare from "@requeue/cloudflare"
import { open, turns } from "./virtualBroker.ts"

type Handler = NonNullable<Cloudflare.QueueWorker<any, any>["queue"]>

/** Runs a handler over a batch of messages a and b, and answers which of them are retried, and in how long. */
const retriedBy = async (queue: Handler): Promise<ReadonlyArray<readonly [string, number]>> => {
  await using broker = await open()
  const settings = { queue: "q", max_batch_size: 2, retry_delay: 60 }
  await Cloudflare.consume(broker.requeue, settings, { queue }, {})
  await Cloudflare.producer(broker.requeue, "q").sendBatch([{ body: "a" }, { body: "b" }])
  await turns()
  return await broker.later("q")
}

describe("a worker", () => {
  it("runs as it is: batch, env and ctx", async () => {
    await using broker = await open()
    const seen: Array<unknown> = []
    const worker = {
      greeting: "hello",
      async queue(batch: Cloudflare.MessageBatch<string>, env: { readonly NEXT: Cloudflare.Queue<string> }) {
        for (const { attempts, body, id, timestamp } of batch.messages) {
          seen.push([batch.queue, body, attempts, typeof id, timestamp])
          await env.NEXT.send(`${this.greeting} ${body}`, { contentType: "text" })
        }
        seen.push(batch.metadata.metrics)
      }
    }
    const env = { NEXT: Cloudflare.producer<string>(broker.requeue, "next") }
    await broker.requeue.send("q", "world")
    await broker.advance(1000)
    await Cloudflare.consume(broker.requeue, { queue: "q", max_batch_timeout: 0 }, worker, env)
    await turns()
    assert.deepStrictEqual(seen, [["q", "world", 1, "string", new Date(0)], { backlogCount: 1, backlogBytes: 0 }])
    assert.deepStrictEqual(await broker.waiting("next"), ["hello world"])
    assert.deepStrictEqual(await broker.requeue.counts("q"), { ready: 0, inFlight: 0, delayed: 0 })
  })

  it("acks by returning, retries all by throwing", async () => {
    assert.deepStrictEqual(await retriedBy(() => {}), [])
    const retried = [
      ["a", 60_000],
      ["b", 60_000]
    ] as const
    assert.deepStrictEqual(await retriedBy(() => Promise.reject(new Error("no"))), retried)
    const thrower = () => {
      throw new Error("no")
    }
    assert.deepStrictEqual(await retriedBy(thrower), retried)
  })

  it("calls on messages beat calls on the batch, and the first call wins", async () => {
    const fate = await retriedBy((batch) => {
      const [a, b] = batch.messages
      a!.ack()
      a!.retry({ delaySeconds: 1 })
      b!.retry({ delaySeconds: 5 })
      b!.ack()
      batch.ackAll()
      batch.retryAll({ delaySeconds: 9 })
    })
    assert.deepStrictEqual(fate, [["b", 5000]])
  })

  it("ackAll survives a throw; retryAll takes what has no verdict, and its delay", async () => {
    const acked = await retriedBy((batch) => {
      batch.ackAll()
      throw new Error("no")
    })
    assert.deepStrictEqual(acked, [])
    const retried = await retriedBy((batch) => {
      batch.messages[0]!.ack()
      batch.retryAll({ delaySeconds: 9 })
      batch.retryAll({ delaySeconds: 3 })
    })
    assert.deepStrictEqual(retried, [["b", 9000]])
  })
})

describe("waitUntil", () => {
  it("the batch goes on until what was handed over has ended, also from within", async () => {
    await using broker = await open()
    const gates = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    const inFlight = async () => (await broker.requeue.counts("q")).inFlight
    const worker: Cloudflare.QueueWorker = {
      queue: (_, __, ctx) => ctx.waitUntil(gates[0]!.promise.then(() => ctx.waitUntil(gates[1]!.promise)))
    }
    await Cloudflare.consume(broker.requeue, { queue: "q", max_batch_timeout: 0 }, worker, {})
    await broker.requeue.send("q", 1)
    for (const gate of gates) {
      await turns()
      assert.strictEqual(await inFlight(), 1)
      gate.resolve()
    }
    await turns()
    assert.strictEqual(await inFlight(), 0)
  })

  it("a rejection fails the batch, but only when the rest has ended; verdicts given by then count", async () => {
    const fate = await retriedBy((batch, _, ctx) => {
      ctx.waitUntil(Promise.reject(new Error("no")))
      ctx.waitUntil(turns(5).then(() => batch.messages[0]!.ack()))
    })
    assert.deepStrictEqual(fate, [["b", 60_000]])
  })

  it("goes on as well when the handler throws", async () => {
    const fate = await retriedBy((batch, _, ctx) => {
      ctx.waitUntil(turns(5).then(() => batch.messages[0]!.ack()))
      ctx.passThroughOnException()
      throw new Error("no")
    })
    assert.deepStrictEqual(fate, [["b", 60_000]])
  })
})
