/** Limits of the server: deliveries, prefetch, and deliveries on connections that broke. */
import { BatchPolicy, Consumer, type Event, RetryPolicy } from "@requeue/core"
import * as Effect from "effect/Effect"
import { assert, test } from "vitest"
import { shared } from "../server.ts"
import { controls, drainIds, ids, on, outgoing, publishAll, queueName, quiet, until } from "../world.ts"
import { consume, no, type Run } from "./trap.ts"

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

test("a connection that breaks again and again counts deliveries that the consumer had not settled, and loses none of them", async () => {
  const queue = queueName("massacre")
  await on({ url: proxied, deliveryLimit: 10 }, (broker) =>
    Effect.gen(function* () {
      yield* broker.publish(ids(5).map((id) => outgoing(queue, id)))
      const { pulse } = yield* controls(broker)
      let [delivered, reconnects] = [0, 0]
      const subscription = yield* broker.subscribe({
        queue,
        retry: RetryPolicy.make(),
        deadLetterQueues: [`${queue}.dlq`],
        onDelivery: () => delivered++,
        onReconnect: () => reconnects++
      })
      subscription.credit(5)
      // As often as the limit lets them come again.
      for (let times = 1; times <= 10; times++) {
        yield* until("all five", () => delivered >= 5 * times)
        proxy.cut()
      }
      yield* until("all five for the last time", () => delivered === 55)
      proxy.cut()
      yield* until("the last connection", () => reconnects === 11)
      yield* pulse
      assert.strictEqual(delivered, 55)
    })
  )
  const left = [...(await drainIds(url, queue)), ...(await drainIds(url, `${queue}.dlq`))]
  assert.deepStrictEqual(new Set(left).size, 5)
})
