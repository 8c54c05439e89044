/** Settlements that SQS refuses: the fate of each, and what is done with a delivery that is still ours. */
import { Broker, type Delivery, RetryPolicy } from "@requeue/core"
import { type Metadata, Settlement } from "@requeue/core/port"
import type { StrictSqs } from "@requeue/brokers"
import * as Effect from "effect/Effect"
import { assert, describe, test } from "vitest"
import { strict } from "./strict.ts"
import { drain, has, idOf, left, on, outgoing, queueName, until, untilEmpty, urlOf } from "../real/world.ts"

// All tests of this file run at once, each behind a proxy of its own.
const { another, behind } = await strict()

const letter = (queue: string, cut?: Metadata.Truncation): Settlement.Settlement => ({
  _tag: "DeadLetter",
  reason: "permanent",
  queue,
  error: { name: "E", message: "m".repeat(256) },
  cut
})

/** A subscription whose deliveries are written down. */
const subscribe = (queue: string, credit = 10) =>
  Effect.gen(function* () {
    const broker = yield* Broker.Broker
    const received: Array<Delivery.Delivery> = []
    const subscription = yield* broker.subscribe({
      queue,
      retry: RetryPolicy.make(),
      deadLetterQueues: [`${queue.replace(".fifo", "")}.dlq${queue.endsWith(".fifo") ? ".fifo" : ""}`],
      onDelivery: (delivery) => void received.push(delivery),
      onReconnect: () => {}
    })
    subscription.credit(credit)
    return {
      ...subscription,
      received,
      next: (count: number) => until(`delivery ${count}`, () => received.length >= count),
      settle: (...requests: ReadonlyArray<readonly [Delivery.Delivery, Settlement.Settlement]>) =>
        Effect.map(
          subscription.settle(requests.map(([delivery, settlement]) => ({ delivery, settlement }))),
          (failed) => failed.map(({ delivery, error, fate }) => `${delivery.metadata.id} ${fate} ${error.reason}`)
        )
    }
  })

type Subscribed = Effect.Success<ReturnType<typeof subscribe>>

/** A message that was received, the way to settle it, and the proxy to SQS. */
const received = async (
  program: (queue: string, subscription: Subscribed, own: StrictSqs) => Effect.Effect<unknown, unknown>,
  { name = queueName("fate"), ...options }: { name?: string; visibilityTimeout?: number; requestTimeout?: number } = {}
) => {
  await using own = await another()
  await on({ url: own.url, visibilityTimeout: 600_000, ...options }, (broker) =>
    Effect.gen(function* () {
      const subscription = yield* subscribe(name)
      yield* broker.publish([outgoing(name, "a")])
      yield* subscription.next(1)
      yield* program(name, subscription, own)
    })
  )
}

describe.concurrent("a role that may not", () => {
  test.each<[action: string, settlement: Settlement.Settlement]>([
    ["DeleteMessage", Settlement.Ack],
    ["ChangeMessageVisibility", Settlement.Release()],
    ["SendMessage", letter("elsewhere")]
  ])("%s: %o is refused, the delivery stays ours, and is settled again", (action, settlement) =>
    received((queue, { received: [a], settle }, own) =>
      Effect.gen(function* () {
        own.deny([action])
        for (const _ of [1, 2]) assert.deepStrictEqual(yield* settle([a!, settlement]), ["a rejected AccessRefused"])
        assert.isTrue(yield* Effect.promise(() => has(behind, queue, 0, 1, 0)))
        own.deny([])
        assert.deepStrictEqual(yield* settle([a!, Settlement.Ack]), [])
        yield* untilEmpty(behind, queue)
      })
    )
  )

  test("ChangeMessageVisibility: a retry is refused, and is a copy when it is asked for again", () =>
    received((queue, { received: [a], settle }, own) =>
      Effect.gen(function* () {
        own.deny(["ChangeMessageVisibility"])
        assert.deepStrictEqual(yield* settle([a!, Settlement.Retry(60_000)]), ["a rejected AccessRefused"])
        assert.deepStrictEqual(yield* settle([a!, Settlement.Retry(60_000)]), [])
        yield* until("a copy", () => has(behind, queue, 0, 0, 1))
      })
    ))

  test("DeleteMessage: a dead letter is stored once, however often its message is settled", async () => {
    const queue = queueName("once")
    await received(
      (name, { received: [a], settle }, own) =>
        Effect.gen(function* () {
          own.deny(["DeleteMessage"])
          const sent = () => own.calls()["SendMessageBatch"] ?? 0
          const before = sent()
          const asked = [letter(`${name}.dlq`), letter(`${name}.dlq`), Settlement.Retry(0), Settlement.Release(60_000)]
          for (const each of asked) assert.deepStrictEqual(yield* settle([a!, each]), ["a rejected AccessRefused"])
          assert.strictEqual(sent() - before, 1)
          assert.isTrue(yield* Effect.promise(() => has(behind, name, 0, 1, 0)))
          own.deny([])
          assert.deepStrictEqual(yield* settle([a!, letter(`${name}.dlq`)]), [])
          yield* untilEmpty(behind, name)
        }),
      { name: queue }
    )
    assert.deepStrictEqual((await drain(behind, `${queue}.dlq`)).map(idOf), ["a"])
  })
})

describe.concurrent("SQS", () => {
  test.each<[name: string, ask: (own: StrictSqs) => unknown, settlement: Settlement.Settlement, told: string]>([
    [
      "throttles",
      ({ fail }) => fail({ times: 50 }, "ThrottlingException"),
      Settlement.Retry(60_000),
      "transient Throttled"
    ],
    [
      "is down",
      ({ fail }) => fail({ times: 50 }, "ServiceUnavailable"),
      Settlement.Retry(60_000),
      "transient ConnectionFailed"
    ],
    ["breaks off", ({ lose }) => lose({ times: 50 }, "reset"), Settlement.Retry(60_000), "unknown ConnectionLost"],
    ["never answers", ({ lose }) => lose({ times: 50 }), Settlement.Retry(60_000), "unknown Timeout"]
  ])("%s: the delivery is held, and settled when it is over", (_, ask, settlement, told) =>
    received(
      (queue, { received: [a], settle }, own) =>
        Effect.gen(function* () {
          ask(own)
          assert.deepStrictEqual(yield* settle([a!, settlement]), [`a ${told}`])
          own.clear()
          assert.deepStrictEqual(yield* settle([a!, Settlement.Ack]), [])
          yield* untilEmpty(behind, queue)
        }),
      { requestTimeout: 1500 }
    )
  )
})

test.concurrent.for<[name: string, kind: string, settlement: (queue: string) => Settlement.Settlement]>([
  ["a dead letter", "", (queue) => letter(`${queue}.dlq`)],
  ["a dead letter of a FIFO queue", ".fifo", (queue) => letter(`${queue.slice(0, -5)}.dlq.fifo`)],
  ["a retry by copy", "", () => Settlement.Retry(13 * 3_600_000)]
])("%s that may be stored, and is refused when the SDK asks again: its fate is unknown", ([, kind, settlement]) =>
  received(
    (queue, { received: [a], settle }, own) =>
      Effect.gen(function* () {
        own.lose({ action: "SendMessageBatch", times: 1 }, "reset")
        own.failEntries({ action: "SendMessageBatch", times: 1 }, 10, "KmsDisabled")
        assert.match(String(yield* settle([a!, settlement(queue)])), /^a unknown/)
        own.clear()
        assert.deepStrictEqual(yield* settle([a!, Settlement.Ack]), [])
      }),
    { name: `${queueName("copied")}${kind}` }
  )
)

test.concurrent("a dead letter that is too large for its queue is refused alone; its neighbours are settled, and it is settled smaller", async () => {
  await using own = await another()
  const queue = queueName("large")
  await on({ url: own.url, visibilityTimeout: 600_000 }, (broker) =>
    Effect.gen(function* () {
      const { next, received: all, settle } = yield* subscribe(queue)
      yield* Effect.promise(async () => {
        const QueueUrl = await urlOf(behind, `${queue}.dlq`)
        await behind.setQueueAttributes({ QueueUrl, Attributes: { MaximumMessageSize: "1024" } })
      })
      const body = new TextEncoder().encode("x".repeat(700))
      yield* broker.publish([outgoing(queue, "small"), { ...outgoing(queue, "large"), body }])
      yield* next(2)
      const large = all.find(({ metadata }) => metadata.id === "large")!
      const requests = all.map((delivery) => [delivery, letter(`${queue}.dlq`)] as const)
      assert.deepStrictEqual(yield* settle(...requests), ["large rejected BodyTooLarge"])
      assert.deepStrictEqual(yield* settle([large, letter(`${queue}.dlq`, "error-text")]), [])
      yield* untilEmpty(behind, queue)
    })
  )
  assert.deepStrictEqual((await drain(behind, `${queue}.dlq`)).map(idOf).toSorted(), ["large", "small"])
})

test.concurrent("a foreign body that nearly fills a message becomes a dead letter when nothing but its id goes with it", async () => {
  await using own = await another()
  const queue = queueName("full")
  await on({ url: own.url, visibilityTimeout: 600_000 }, () =>
    Effect.gen(function* () {
      const { next, received: all, settle } = yield* subscribe(queue)
      const QueueUrl = yield* Effect.promise(() => urlOf(behind, queue))
      yield* Effect.promise(() => behind.sendMessage({ QueueUrl, MessageBody: "x".repeat(1_048_470) }))
      yield* next(1)
      const [delivery] = all
      const told = (yield* settle([delivery!, letter(`${queue}.dlq`)]))[0]
      assert.match(told ?? "", /rejected BodyTooLarge/)
      assert.deepStrictEqual(yield* settle([delivery!, letter(`${queue}.dlq`, "all")]), [])
      yield* untilEmpty(behind, queue)
    })
  )
  assert.strictEqual(await left(behind, `${queue}.dlq`), 1)
})

test.concurrent("a retry that a FIFO queue cannot keep is refused, and the delivery is settled otherwise", async () => {
  await received(
    (queue, { received: [a], settle }) =>
      Effect.gen(function* () {
        assert.deepStrictEqual(yield* settle([a!, Settlement.Retry(13 * 3_600_000)]), ["a rejected Unsupported"])
        assert.deepStrictEqual(yield* settle([a!, Settlement.Ack]), [])
        yield* untilEmpty(behind, queue)
      }),
    { name: `${queueName("fifo")}.fifo` }
  )
})

test.concurrent("each delivery of a message has its name, and no other message has it", async () => {
  await using own = await another()
  const queue = queueName("named")
  await on({ url: own.url }, (broker) =>
    Effect.gen(function* () {
      const { identify, next, received: all, settle } = yield* subscribe(queue)
      yield* broker.publish([outgoing(queue, "the same"), outgoing(queue, "the same")])
      yield* next(2)
      const names = all.map((delivery) => identify!(delivery))
      assert.strictEqual(new Set(names).size, 2)
      assert.deepStrictEqual(yield* settle([all[0]!, Settlement.Retry(0)]), [])
      yield* next(3)
      assert.strictEqual(identify!(all[2]!), names[0])
      // A copy is another message.
      assert.deepStrictEqual(yield* settle([all[2]!, Settlement.Release(1)]), [])
      yield* next(4)
      assert.notInclude(names, identify!(all[3]!))
    })
  )
})
