/** Cases of the server's limits: deliveries, prefetch, and deliveries on connections that broke. */
import { type Case, Check, Wait } from "@requeue/conformance"
import * as Workload from "@requeue/conformance/Workload"
import { BatchPolicy, Consumer, type Delivery, type RetryPolicy as Policy, RetryPolicy } from "@requeue/core"
import { Settlement } from "@requeue/core/port"
import * as Effect from "effect/Effect"
import type { Server } from "../../src/servers/rabbitmq/Server.ts"
import { test } from "./Own.ts"

const quorum = { "x-queue-type": "quorum" }

/** Starts a consumer that fails a message until this attempt; returns the attempts. */
const failing = (queue: string, retry: Policy.RetryPolicy, until = Infinity) => {
  const attempts: Array<number> = []
  const start = Consumer.start<string>(queue, { retry }, (message) => {
    attempts.push(message.attempts)
    return message.attempts < until ? Effect.fail(new Error("no")) : Effect.void
  })
  return Effect.as(start, attempts)
}

const ready = ({ vhost }: Server, queue: string): number => vhost.queues.get(queue)?.counts.ready ?? 0

const upTo = (count: number) => Array.from({ length: count }, (_, index) => index + 1)

export const cases: ReadonlyArray<Case.Case> = [
  test("a policy of 25 retries has 26 runs, beyond the server's own limit of 20", [{}, {}], ({ send, server }) =>
    Effect.gen(function* () {
      const attempts = yield* failing("orders", RetryPolicy.make({ maxRetries: 25 }))
      yield* send("orders", "a")
      yield* Wait.until("the dead letter", () => ready(server, "orders.dlq") === 1)
      Check.equal("attempts", attempts, upTo(26))
    })
  ),
  test("unlimited retries at once go on beyond the queue's limit", [{}, { deliveryLimit: 10 }], ({ send }) =>
    Effect.gen(function* () {
      const attempts = yield* failing("orders", RetryPolicy.make({ maxRetries: "unlimited" }), 40)
      yield* send("orders", "a")
      yield* Wait.until("40 runs", () => attempts.length === 40)
      Check.equal("attempts", attempts, upTo(40))
    })
  ),
  test(
    "an adopted queue's retries at once go on beyond the server's own limit",
    [{}, { queues: { orders: { assert: "never" } } }],
    ({ send, server }) =>
      Effect.gen(function* () {
        server.vhost.declareQueue("orders", { durable: true, arguments: quorum }, server)
        const attempts = yield* failing("orders", RetryPolicy.make({ maxRetries: 40 }), 40)
        yield* send("orders", "a")
        yield* Wait.until("40 runs", () => attempts.length === 40)
        Check.equal("attempts", attempts, upTo(40))
      })
  ),
  // A prefetch smaller than the batch never fills it.
  test("a batch of 100 is filled: the prefetch follows the batch", [{}, {}], ({ broker }) =>
    Effect.gen(function* () {
      const sizes: Array<number> = []
      yield* Workload.publishAll(broker, "orders", Workload.ids(200))
      const batch = BatchPolicy.make({ maxBatchSize: 100, maxBatchTimeout: 60_000 })
      yield* Consumer.startBatch("orders", { batch }, ({ messages }) => void sizes.push(messages.length))
      yield* Wait.until("two batches", () => sizes.length === 2)
      Check.equal("sizes", sizes, [100, 100])
    })
  ),
  test(
    "a connection that breaks more often than the queue's limit allows counts deliveries, and no letter is made",
    [{}, { deliveryLimit: 10 }],
    ({ broker, cut, send, server }) =>
      Effect.gen(function* () {
        for (const id of Workload.ids(5)) yield* send("orders", id)
        const attempts = new Map<string, number>()
        const subscription = yield* broker.subscribe({
          queue: "orders",
          retry: RetryPolicy.make(),
          deadLetterQueues: ["orders.dlq"],
          onDelivery: (delivery) => attempts.set(delivery.metadata.id, delivery.attempts),
          onReconnect: () => {}
        })
        subscription.credit(5)
        for (const times of upTo(14)) {
          const isCounted = () => attempts.size === 5 && [...attempts.values()].every((count) => count >= times)
          yield* Wait.until("all five", isCounted)
          cut()
        }
        yield* Effect.sleep("1 minute")
        Check.equal("dead letters", ready(server, "orders.dlq"), 0)
        Check.equal("messages", server.vhost.queues.get("orders")?.counts.unsettled, 5)
      })
  ),
  // A classic queue has no count, and no room for a copy that carries one.
  test(
    "a message that returns to a full classic queue is delivered, not returned again and again",
    [
      {},
      { queueType: "classic", queues: { orders: { arguments: { "x-max-length": 1, "x-overflow": "reject-publish" } } } }
    ],
    ({ broker, cut, send, server }) =>
      Effect.gen(function* () {
        const deliveries: Array<Delivery.Delivery> = []
        const subscription = yield* broker.subscribe({
          queue: "orders",
          retry: RetryPolicy.make(),
          deadLetterQueues: [],
          onDelivery: (delivery) => deliveries.push(delivery),
          onReconnect: () => {}
        })
        subscription.credit(1)
        yield* send("orders", "a")
        yield* Wait.until("the first delivery", () => deliveries.length === 1)
        yield* send("orders", "b")
        cut()
        yield* Wait.until("the second delivery", () => deliveries.length === 2)
        const seen = deliveries.map(({ attempts, metadata: { id } }) => `${id}${attempts}`)
        Check.equal("deliveries", seen, ["a1", "a2"])
        const failures = yield* subscription.settle([{ delivery: deliveries[1]!, settlement: Settlement.Ack }])
        Check.equal("failures", failures, [])
        yield* Wait.until("the other message", () => deliveries.length === 3)
        Check.equal("unsettled", server.vhost.queues.get("orders")?.counts.unsettled, 1)
      })
  )
]
