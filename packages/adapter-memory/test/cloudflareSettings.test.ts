/** Wrangler's settings of queue consumers and producers. */
import { assert, describe, it } from "@effect/vitest"
import { Broker, BrokerError } from "@requeue/core"
import * as Cloudflare from "@requeue/cloudflare"
import { connect } from "@requeue/core/promise"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { MemoryBroker } from "../src/index.ts"
import { open, turns } from "./virtualBroker.ts"

describe("a consumer's settings", () => {
  it("max_retries, retry_delay and dead_letter_queue", async () => {
    await using broker = await open()
    const times: Array<number> = []
    const settings = { queue: "q", max_batch_timeout: 0, max_retries: 2, retry_delay: 10, dead_letter_queue: "graves" }
    const worker: Cloudflare.QueueWorker = {
      queue: () => {
        times.push(broker.now())
        throw new Error("no")
      }
    }
    await Cloudflare.consume(broker.requeue, settings, worker, {})
    await broker.requeue.send("q", 1)
    await broker.advance("1 hour")
    assert.deepStrictEqual(times, [0, 10_000, 20_000])
    assert.deepStrictEqual(await broker.waiting("graves"), ["1"])
  })

  it("unset: 3 retries at once, then <queue>.dlq", async () => {
    await using broker = await open()
    let runs = 0
    const worker: Cloudflare.QueueWorker = {
      queue: (batch) => {
        runs++
        batch.retryAll()
      }
    }
    await Cloudflare.consume(broker.requeue, { queue: "q", max_batch_size: 1 }, worker, {})
    await broker.requeue.send("q", 1)
    await turns()
    assert.strictEqual(runs, 4)
    assert.deepStrictEqual(await broker.waiting("q.dlq"), ["1"])
  })

  it("max_batch_size and max_batch_timeout, 10 messages or 5 seconds unless set", async () => {
    for (const [settings, expected] of [
      [
        {},
        [
          [0, 10],
          [5000, 5]
        ]
      ],
      [{ max_batch_size: 100, max_batch_timeout: 60 }, [[60_000, 15]]],
      [
        { max_batch_size: 6, max_batch_timeout: 1 },
        [
          [0, 6],
          [0, 6],
          [1000, 3]
        ]
      ]
    ] as const) {
      await using broker = await open()
      const batches: Array<readonly [number, number]> = []
      const worker: Cloudflare.QueueWorker = {
        queue: ({ messages }) => void batches.push([broker.now(), messages.length])
      }
      await Cloudflare.consume(broker.requeue, { queue: "q", ...settings }, worker, {})
      const bodies = Array.from({ length: 15 }, (_, body) => ({ body }))
      await Cloudflare.producer(broker.requeue, "q").sendBatch(bodies)
      await broker.advance("2 minutes")
      assert.deepStrictEqual<unknown>(batches, expected)
    }
  })

  it("max_concurrency, 1 unless set", async () => {
    for (const [max_concurrency, expected] of [
      [undefined, 1],
      [3, 3]
    ] as const) {
      await using broker = await open()
      const gate = Promise.withResolvers<void>()
      let running = 0
      const worker: Cloudflare.QueueWorker = {
        queue: () => {
          running++
          return gate.promise
        }
      }
      await Cloudflare.consume(broker.requeue, { queue: "q", max_batch_size: 1, max_concurrency }, worker, {})
      await broker.requeue.sendBatch(
        "q",
        Array.from({ length: 9 }, (_, body) => ({ body }))
      )
      await turns()
      assert.strictEqual(running, expected)
      gate.resolve()
    }
  })

  it.each<readonly [string, Partial<Cloudflare.ConsumerSettings>, RegExp]>([
    ["queue", { queue: "" }, /name must have 1 to 200 characters, got ""/],
    ["max_batch_size", { max_batch_size: 101 }, /max_batch_size must be a whole number from 1 to 100, got 101/],
    [
      "max_batch_timeout",
      { max_batch_timeout: 61 },
      /max_batch_timeout must be a number of seconds from 0 to 60, got 61/
    ],
    ["max_retries", { max_retries: -1 }, /max_retries must be a whole number >= 0, got -1/],
    ["max_concurrency", { max_concurrency: 0 }, /max_concurrency must be a whole number from 1 to 1000, got 0/],
    ["retry_delay", { retry_delay: 86_401 }, /retry_delay must be a number of seconds from 0 to 86400, got 86401/],
    ["dead_letter_queue", { dead_letter_queue: "q" }, /its own dead-letter queue.*another queue/]
  ])("a wrong %s is refused before anything starts", async (_, wrong, pattern) => {
    await using broker = await open()
    const starting = Cloudflare.consume(broker.requeue, { queue: "q", ...wrong }, { queue: () => {} }, {})
    const error = await starting.catch((error: unknown) => error)
    assert.match(String(error), pattern)
  })

  it("a worker without a queue handler is refused", async () => {
    await using broker = await open()
    const starting = Cloudflare.consume(broker.requeue, { queue: "q" }, {}, {})
    const error = await starting.catch((error: unknown) => error)
    assert.instanceOf(error, RangeError)
    assert.match(String(error), /worker must be an object with a queue handler, got an object/)
  })
})

describe("a producer's settings", () => {
  it("delivery_delay; delaySeconds of the batch, and of a message, come before it", async () => {
    await using broker = await open()
    const queue = Cloudflare.producer(broker.requeue, { queue: "q", delivery_delay: 30 })
    await queue.send("queue")
    await queue.send("message", { delaySeconds: 20 })
    await queue.send("at once", { delaySeconds: 0 })
    await queue.sendBatch([{ body: "batch" }, { body: "own", delaySeconds: 5 }], { delaySeconds: 10 })
    assert.deepStrictEqual(await broker.waiting("q"), [`"at once"`])
    assert.deepStrictEqual(await broker.later("q"), [
      ["own", 5000],
      ["batch", 10_000],
      ["message", 20_000],
      ["queue", 30_000]
    ])
  })

  it("a wrong delivery_delay, and a wrong delaySeconds, are refused", async () => {
    await using broker = await open()
    assert.throws(
      () => Cloudflare.producer(broker.requeue, { queue: "q", delivery_delay: -1 }),
      /delivery_delay must be a number of seconds from 0 to 86400, got -1/
    )
    const queue = Cloudflare.producer(broker.requeue, "q")
    for (const delaySeconds of [-1, 86_401, Number.NaN]) {
      const error = await queue.send(1, { delaySeconds }).catch((error: unknown) => error)
      assert.match(String(error), /InvalidDelay: send.delay: a delay is a duration from 0 to 1d/)
    }
    assert.strictEqual((await queue.metrics()).backlogCount, 0)
  })
})

it("metrics count what waits; a broker that cannot tell fails metrics() and nothing else", async () => {
  await using broker = await open()
  const queue = Cloudflare.producer(broker.requeue, "q")
  await queue.send(1, { delaySeconds: 9 })
  const answer = await queue.send(2)
  assert.deepStrictEqual(answer, { metadata: { metrics: { backlogCount: 2, backlogBytes: 0 } } })
  assert.deepStrictEqual(await queue.metrics(), { backlogCount: 2, backlogBytes: 0 })

  const error = new BrokerError.BrokerError({
    broker: "memory",
    operation: "counts",
    reason: "Timeout",
    detail: "no answer"
  })
  const blind = Effect.map(Broker.Broker, (sighted) => ({
    ...sighted,
    admin: { ...sighted.admin, counts: () => Effect.fail(error) }
  }))
  const layer = Layer.effect(Broker.Broker, blind).pipe(Layer.provide(MemoryBroker.layer()))
  await using requeue = await connect(layer, { logLevel: "None" })
  const unseen = Cloudflare.producer(requeue, "q")
  assert.deepStrictEqual(await unseen.send(1), { metadata: { metrics: { backlogCount: 0, backlogBytes: 0 } } })
  assert.strictEqual(await unseen.metrics().catch((error: unknown) => error), error)
  const seen = Promise.withResolvers<unknown>()
  const worker: Cloudflare.QueueWorker = { queue: ({ metadata }) => seen.resolve(metadata) }
  await Cloudflare.consume(requeue, { queue: "q", max_batch_timeout: 0 }, worker, {})
  assert.deepStrictEqual(await seen.promise, { metrics: { backlogCount: 0, backlogBytes: 0 } })
})
