/** Limits of the server: deliveries, prefetch, and deliveries on connections that broke. */
import { BatchPolicy, Consumer, type Delivery, type Event, RetryPolicy } from "@requeue/core"
import { Settlement } from "@requeue/core/port"
import * as Effect from "effect/Effect"
import { assert, test } from "vitest"
import { shared } from "../../real/server.ts"
import { drainIds, ids, on, outgoing, publishAll, queueName, quiet, until } from "../../world.ts"
import { consume, no, raw, type Run } from "./trap.ts"

const { proxied, proxy, url } = await shared()

// Since 4.0, a quorum queue drops a message after 20 deliveries unless told otherwise.
test("a policy of 25 retries has 26 runs, beyond the server's own limit of 20", async () => {
  const queue = queueName("limit")
  const runs: Array<Run> = []
  const events: Array<Event.Event> = []
  await on({ url }, (broker) =>
    Effect.gen(function* () {
      yield* broker.publish([outgoing(queue, "a")])
      const retry = RetryPolicy.make({ maxRetries: 25 })
      yield* consume(queue, runs, { retry, onEvent: (event) => events.push(event) }, no)
      yield* until("its death", () => events.some(({ _tag }) => _tag === "DeadLettered"))
      yield* quiet(broker)
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
      yield* until("40 runs", () => runs.length === 40)
    })
  )
  assert.deepStrictEqual(
    runs.map(({ attempts }) => attempts),
    Array.from({ length: 40 }, (_, index) => index + 1)
  )
})

// A prefetch smaller than the batch never fills it: then its timeout says how many there are.
test("a batch of 100 is filled: the prefetch follows the batch", async () => {
  const queue = queueName("batch")
  const sizes: Array<number> = []
  await on({ url }, (broker) =>
    Effect.gen(function* () {
      yield* publishAll(broker, queue, ids(200))
      const batch = BatchPolicy.make({ maxBatchSize: 100, maxBatchTimeout: 60_000 })
      yield* Consumer.startBatch(queue, { batch }, ({ messages }) => void sizes.push(messages.length))
      yield* until("two batches", () => sizes.length === 2)
    })
  )
  assert.deepStrictEqual(sizes, [100, 100])
})

test("a connection that breaks more often than the queue's limit allows counts deliveries, and the server gives nothing up", async () => {
  const queue = queueName("massacre")
  await on({ url: proxied, deliveryLimit: 10 }, (broker) =>
    Effect.gen(function* () {
      yield* broker.publish(ids(5).map((id) => outgoing(queue, id)))
      const attempts = new Map<string, number>()
      const subscription = yield* broker.subscribe({
        queue,
        retry: RetryPolicy.make(),
        deadLetterQueues: [`${queue}.dlq`],
        onDelivery: (delivery) => attempts.set(delivery.metadata.id, delivery.attempts),
        onReconnect: () => {}
      })
      subscription.credit(5)
      for (let times = 1; times <= 14; times++) {
        yield* until("all five", () => attempts.size === 5 && [...attempts.values()].every((count) => count >= times))
        proxy.cut()
      }
    })
  )
  assert.deepStrictEqual(await drainIds(url, `${queue}.dlq`), [])
  assert.strictEqual(new Set(await drainIds(url, queue)).size, 5)
})

// A queue that was made without a limit has the server's own, of 20 from 4.0 on.
test("an adopted queue's retries at once go on beyond the server's own limit", async () => {
  const queue = queueName("adopted")
  const runs: Array<Run> = []
  await raw(url, (channel) => channel.assertQueue(queue, { arguments: { "x-queue-type": "quorum" } }))
  await on({ url, queues: { [queue]: { assert: "never" } } }, (broker) =>
    Effect.gen(function* () {
      yield* broker.publish([outgoing(queue, "a")])
      const retry = RetryPolicy.make({ maxRetries: 40 })
      yield* consume(queue, runs, { retry }, (message) => (message.attempts < 40 ? no() : undefined))
      yield* until("40 runs", () => runs.length === 40)
    })
  )
  assert.strictEqual(runs.at(-1)?.attempts, 40)
})

// A classic queue has no count, and no room for a copy that carries one.
test("a message that comes back to a full classic queue is delivered, not given back again and again", async () => {
  const queue = queueName("crowded")
  const full = { arguments: { "x-max-length": 1, "x-overflow": "reject-publish" } }
  const deliveries: Array<Delivery.Delivery> = []
  await on({ url: proxied, queueType: "classic", queues: { [queue]: full } }, (broker) =>
    Effect.gen(function* () {
      const subscription = yield* broker.subscribe({
        queue,
        retry: RetryPolicy.make(),
        deadLetterQueues: [],
        onDelivery: (delivery) => deliveries.push(delivery),
        onReconnect: () => {}
      })
      subscription.credit(1)
      yield* broker.publish([outgoing(queue, "a")])
      yield* until("the first delivery", () => deliveries.length === 1)
      yield* broker.publish([outgoing(queue, "b")])
      proxy.cut()
      yield* until("the second delivery", () => deliveries.length === 2)
      const [first, second] = deliveries.map(({ attempts, metadata: { id } }) => `${id}${attempts}`)
      assert.deepStrictEqual([first, second], ["a1", "a2"])
      assert.deepStrictEqual(yield* subscription.settle([{ delivery: deliveries[1]!, settlement: Settlement.Ack }]), [])
      yield* until("the other message", () => deliveries.length === 3)
    })
  )
  assert.deepStrictEqual(await drainIds(url, queue), ["b"])
})
