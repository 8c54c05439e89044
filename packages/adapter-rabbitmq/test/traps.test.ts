/** Traps of RabbitMQ, each of which has lost or duplicated messages somewhere. */
import * as Backoff from "@requeue/core/Backoff"
import * as BatchPolicy from "@requeue/core/BatchPolicy"
import * as Consumer from "@requeue/core/Consumer"
import type { Event } from "@requeue/core/Event"
import * as Feasibility from "@requeue/core/Feasibility"
import * as RetryPolicy from "@requeue/core/RetryPolicy"
import * as Effect from "effect/Effect"
import { connect, type Channel } from "amqplib"
import { assert, describe, test, vi } from "vitest"
import { server } from "./server.ts"
import { drainIds, ids, on, outgoing, publishAll, queueName, reasonOf, until } from "./world.ts"

vi.setConfig({ testTimeout: 60_000 })

const one = await server()
const { url } = one

/** As another client. */
const raw = async <A>(run: (channel: Channel) => Promise<A>): Promise<A> => {
  const model = await connect(url)
  model.on("error", () => {})
  const channel = await model.createChannel()
  channel.on("error", () => {})
  try {
    const answer = await run(channel)
    // What was published is written before the channel is closed, and may not be before its connection is.
    await channel.close()
    return answer
  } finally {
    await model.close().catch(() => {})
  }
}

type Run = readonly [id: string, attempts: number, at: number]

/** A consumer that writes down its runs. */
const consume = (
  queue: string,
  runs: Array<Run>,
  options: Consumer.Options,
  handler: (message: Parameters<Parameters<typeof Consumer.start<string>>[2]>[0]) => unknown = () => {}
) =>
  Consumer.start<string>(queue, options, (message) => {
    runs.push([message.id, message.attempts, Date.now()])
    return handler(message) as void
  })

const no = () => Effect.fail(new Error("no"))

describe("a copy", () => {
  test("leaves x-death behind: five retries through several levels are six deliveries", async () => {
    const queue = queueName("death")
    const runs: Array<Run> = []
    await on({ url, topology: "levels" }, (broker) =>
      Effect.gen(function* () {
        yield* broker.publish([outgoing(queue, "a")])
        yield* consume(queue, runs, { retry: RetryPolicy.make({ maxRetries: 5, backoff: Backoff.constant(150) }) }, no)
        yield* until("six runs", () => runs.length === 6, 10_000)
        yield* Effect.sleep(500)
      })
    )
    assert.deepStrictEqual(
      runs.map(([, attempts]) => attempts),
      [1, 2, 3, 4, 5, 6]
    )
    assert.deepStrictEqual(await drainIds(url, `${queue}.dlq`), ["a"])
  })

  test("leaves a per-message expiration behind", async () => {
    const queue = queueName("expiration")
    const runs: Array<Run> = []
    await on({ url }, (broker) =>
      Effect.gen(function* () {
        yield* broker.publish([outgoing(queue, "first")])
        yield* consume(queue, runs, { retryDelay: 1500 }, (message) => (message.attempts === 1 ? no() : undefined))
        yield* until("the queue", () => runs.length === 1)
        yield* Effect.promise(() =>
          raw(async (channel) =>
            channel.sendToQueue(queue, Buffer.from('"x"'), { messageId: "x", expiration: "300", persistent: true })
          )
        )
        yield* until("its retry", () => runs.filter(([id]) => id === "x").length === 2, 10_000)
      })
    )
    const [first, second] = runs.filter(([id]) => id === "x")
    assert.isAtLeast(second![2] - first![2], 1500)
  })

  test("goes to the queue that failed alone, not through the fan-out again", async () => {
    const [exchange, failing, other] = [queueName("fanout"), queueName("failing"), queueName("other")]
    const runs: Array<Run> = []
    const bindings = [{ exchange, routingKey: "" }]
    await raw((channel) => channel.assertExchange(exchange, "fanout"))
    await on({ url, queues: { [failing]: { bindings }, [other]: { bindings } } }, () =>
      Effect.gen(function* () {
        yield* consume(failing, runs, { retry: RetryPolicy.make({ backoff: Backoff.constant(100) }) }, (message) =>
          message.attempts < 3 ? no() : undefined
        )
        const others: Array<Run> = []
        yield* consume(other, others, {})
        yield* Effect.promise(() => raw(async (channel) => channel.publish(exchange, "", Buffer.from("1"))))
        yield* until("three runs", () => runs.length === 3)
        yield* Effect.sleep(300)
        assert.strictEqual(others.length, 1)
      })
    )
  })
})

describe("names", () => {
  test("a queue v2 gets nothing of orders.v2, nor of what looks like a pattern", async () => {
    const base = queueName("x")
    const queues = [`v2.${base}`, `orders.v2.${base}`, `#.${base}`, `*.v2.${base}`]
    const seen = new Map<string, Array<Run>>(queues.map((queue) => [queue, []]))
    await on({ url, topology: "levels" }, (broker) =>
      Effect.gen(function* () {
        for (const queue of queues) yield* consume(queue, seen.get(queue)!, {})
        yield* broker.publish(queues.map((queue) => outgoing(queue, queue, 350)))
        yield* until("one each", () => queues.every((queue) => seen.get(queue)!.length > 0), 10_000)
        yield* Effect.sleep(300)
      })
    )
    for (const [queue, runs] of seen) {
      assert.deepStrictEqual(
        runs.map(([id]) => id),
        [queue]
      )
    }
  })

  test.each([199, 200])("of %d characters retry, wait and die as others do", async (length) => {
    const queue = queueName("n").padEnd(length, "n")
    const runs: Array<Run> = []
    const events: Array<Event> = []
    await on({ url, topology: "levels" }, (broker) =>
      Effect.gen(function* () {
        const retry = RetryPolicy.make({ maxRetries: 1, backoff: Backoff.constant(100) })
        yield* consume(queue, runs, { retry, onEvent: (event) => events.push(event) }, no)
        yield* broker.publish([outgoing(queue, "a", 86_400_000 - 1), outgoing(queue, "b", 50)])
        yield* until("its death", () => events.some(({ _tag }) => _tag === "DeadLettered"), 10_000)
      })
    )
    assert.deepStrictEqual(await drainIds(url, `${queue}.dlq`), ["b"])
  })
})

describe("limits", () => {
  test("a policy of 25 retries has 26 runs, beyond the server's own limit of 20", async () => {
    const queue = queueName("limit")
    const runs: Array<Run> = []
    await on({ url }, (broker) =>
      Effect.gen(function* () {
        yield* broker.publish([outgoing(queue, "a")])
        yield* consume(queue, runs, { retry: RetryPolicy.make({ maxRetries: 25 }) }, no)
        yield* until("26 runs", () => runs.length === 26, 20_000)
        yield* Effect.sleep(300)
      })
    )
    assert.strictEqual(runs.length, 26)
    assert.deepStrictEqual(await drainIds(url, `${queue}.dlq`), ["a"])
  })

  test("unlimited retries at once go on beyond the queue's limit", async () => {
    const queue = queueName("unlimited")
    const runs: Array<Run> = []
    await on({ url, deliveryLimit: 10 }, (broker) =>
      Effect.gen(function* () {
        yield* broker.publish([outgoing(queue, "a")])
        const retry = RetryPolicy.make({ maxRetries: "unlimited" })
        yield* consume(queue, runs, { retry }, (message) => (message.attempts < 40 ? no() : undefined))
        yield* until("40 runs", () => runs.length === 40, 20_000)
      })
    )
    assert.deepStrictEqual(
      runs.map(([, attempts]) => attempts),
      Array.from({ length: 40 }, (_, index) => index + 1)
    )
  })

  test("a batch of 100 is filled: the prefetch follows the batch", async () => {
    const queue = queueName("batch")
    const sizes: Array<number> = []
    await on({ url }, (broker) =>
      Effect.gen(function* () {
        yield* publishAll(broker, queue, ids(200))
        const batch = BatchPolicy.make({ maxBatchSize: 100, maxBatchTimeout: 5000 })
        yield* Consumer.startBatch(queue, { batch }, ({ messages }) => void sizes.push(messages.length))
        yield* until("two batches", () => sizes.length === 2, 4000)
      })
    )
    assert.deepStrictEqual(sizes, [100, 100])
  })
})

describe("what is not there", () => {
  test("a delayed message for a deleted queue is kept aside, and holds up no other", async () => {
    const [gone, queue] = [queueName("gone"), queueName("here")]
    const runs: Array<Run> = []
    await on({ url, topology: "levels" }, (broker) =>
      Effect.gen(function* () {
        yield* consume(queue, runs, {})
        const lost = Array.from({ length: 40 }, (_, index) => outgoing(gone, `lost${index}`, 800))
        yield* broker.publish(lost)
        yield* Effect.promise(() => raw((channel) => channel.deleteQueue(gone)))
        yield* broker.publish([outgoing(queue, "b", 800)])
        yield* until("the other one", () => runs.length === 1, 5000)
        yield* Effect.sleep(300)
      })
    )
    const kept = await drainIds(url, "requeue.v1.q.undelivered")
    assert.strictEqual(kept.filter((id) => id.startsWith("lost")).length, 40)
  })

  test("a dead-letter queue that was deleted is made again", async () => {
    const queue = queueName("undead")
    const runs: Array<Run> = []
    await on({ url }, (broker) =>
      Effect.gen(function* () {
        yield* consume(queue, runs, { retry: RetryPolicy.make({ maxRetries: 0 }) }, no)
        yield* Effect.promise(() => raw((channel) => channel.deleteQueue(`${queue}.dlq`)))
        yield* broker.publish([outgoing(queue, "a")])
        yield* until("a run", () => runs.length === 1)
        yield* Effect.sleep(500)
      })
    )
    assert.deepStrictEqual(await drainIds(url, `${queue}.dlq`), ["a"])
  })

  test("where nothing may be declared, an unroutable dead letter leaves its message in the queue", async () => {
    const queue = queueName("unroutable")
    const events: Array<Event> = []
    await raw((channel) => channel.assertQueue(queue, { arguments: { "x-queue-type": "quorum" } }))
    await on({ url, queues: { [queue]: { assert: "never" }, [`${queue}.dlq`]: { assert: "never" } } }, (broker) =>
      Effect.gen(function* () {
        yield* Effect.promise(() => raw((channel) => channel.assertQueue(`${queue}.dlq`)))
        const retry = RetryPolicy.make({ maxRetries: 0 })
        yield* consume(queue, [], { retry, onEvent: (event) => events.push(event) }, no)
        yield* Effect.promise(() => raw((channel) => channel.deleteQueue(`${queue}.dlq`)))
        yield* broker.publish([outgoing(queue, "a")])
        yield* until("a refusal", () => events.some(({ _tag }) => _tag === "SettleFailed"), 10_000)
      })
    )
    assert.deepStrictEqual(await drainIds(url, queue), ["a"])
  })

  test("a dead-letter queue that is full refuses, and the letter waits in its own queue for room", async () => {
    const queue = queueName("full")
    const dlq = `${queue}.dlq`
    const events: Array<Event> = []
    await on({ url, queues: { [dlq]: { arguments: { "x-max-length": 1 } } } }, (broker) =>
      Effect.gen(function* () {
        yield* broker.publish(ids(5).map((id) => outgoing(queue, id)))
        const retry = RetryPolicy.make({ maxRetries: 0 })
        yield* consume(queue, [], { retry, onEvent: (event) => events.push(event) }, no)
        const full = () =>
          events.some((event) => event._tag === "SettleFailed" && reasonOf(event.error) === "QueueFull")
        yield* until("a refusal", full, 10_000)
        assert.isAbove((yield* broker.admin.counts(queue)).ready! + 1, 0)
        const found = new Set<string>()
        for (let round = 0; round < 60 && found.size < 5; round++) {
          for (const id of yield* Effect.promise(() => drainIds(url, dlq))) found.add(id)
          yield* Effect.sleep(250)
        }
        assert.strictEqual(found.size, 5)
      })
    )
  })

  test("a declaration that is refused takes no consumer along", async () => {
    const [queue, foreign] = [queueName("well"), queueName("foreign")]
    const runs: Array<Run> = []
    await raw((channel) => channel.assertQueue(foreign, { arguments: { "x-queue-type": "classic" } }))
    await on({ url }, (broker) =>
      Effect.gen(function* () {
        let lost = 0
        yield* broker.subscribe({
          queue,
          retry: RetryPolicy.make(),
          deadLetterQueues: [],
          maxCredit: 1,
          onDelivery: () => {},
          onReconnect: () => lost++
        })
        const error = yield* Effect.flip(consume(foreign, [], {}))
        assert.strictEqual("reason" in error && error.reason, "QueueMismatch")
        yield* consume(queue, runs, {})
        yield* broker.publish([outgoing(queue, "a")])
        yield* until("a run", () => runs.length === 1, 5000)
        assert.strictEqual(lost, 0)
      })
    )
  })
})

describe("a connection that breaks again and again", () => {
  test("charges what waited in the consumer's hands, and loses none of it", async () => {
    const queue = queueName("massacre")
    await on({ url: one.proxied, deliveryLimit: 10 }, (broker) =>
      Effect.gen(function* () {
        yield* broker.publish(ids(5).map((id) => outgoing(queue, id)))
        let delivered = 0
        const subscription = yield* broker.subscribe({
          queue,
          retry: RetryPolicy.make(),
          deadLetterQueues: [`${queue}.dlq`],
          maxCredit: 5,
          onDelivery: () => delivered++,
          onReconnect: () => {}
        })
        subscription.credit(5)
        yield* until("all five", () => delivered === 5)
        for (let cut = 0; cut < 12; cut++) {
          one.proxy.cut()
          yield* Effect.sleep(400)
        }
        assert.isAtLeast(delivered, 40)
      })
    )
    const left = [...(await drainIds(url, queue)), ...(await drainIds(url, `${queue}.dlq`))]
    assert.deepStrictEqual(new Set(left).size, 5)
  })
})

describe("per-message TTL", () => {
  test("blocks at the head of its queue, and says so beforehand", async () => {
    const queue = queueName("head")
    const runs: Array<Run> = []
    await on({ url, topology: "perMessageTtl" }, (broker) =>
      Effect.gen(function* () {
        const wish = { retry: RetryPolicy.make({ backoff: Backoff.constant(100) }), onLimit: "fail" } as const
        const [finding] = Feasibility.check(wish, broker.capabilities)
        assert.strictEqual(finding?.answer._tag, "Emulated")
        assert.match(JSON.stringify(finding), /waits behind longer ones/)
        yield* consume(queue, runs, {})
        yield* broker.publish([outgoing(queue, "long", 2000), outgoing(queue, "short", 200)])
        const sent = Date.now()
        yield* until("both", () => runs.length === 2, 8000)
        assert.isAtLeast(runs.find(([id]) => id === "short")![2] - sent, 1500)
      })
    )
  })
})
