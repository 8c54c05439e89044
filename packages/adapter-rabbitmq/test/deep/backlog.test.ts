/** All that waits is told to operators, in each topology, on the real server. */
import { Backoff, Consumer, RetryPolicy } from "@requeue/core"
import { Backlog } from "@requeue/core/port"
import { DelayedMessages } from "@requeue/operations"
import * as Effect from "effect/Effect"
import { assert, describe, test } from "vitest"
import type { RabbitMqOptions } from "../../src/index.ts"
import { isAtLeast } from "../../src/internal/version.ts"
import { apart, shared } from "../real/server.ts"
import { no, raw } from "./traps/trap.ts"
import { ids, on, outgoing, queueName, until } from "../world.ts"

const one = await shared()
const { url } = one

const delays = (...millis: ReadonlyArray<number>) =>
  RetryPolicy.make({ maxRetries: millis.length, backoff: Backoff.sequence(millis) })

/** Puts messages into the first backoff of a policy, and ends their consumer. */
const fail = (queue: string, retry: RetryPolicy.RetryPolicy, count: number) =>
  Effect.scoped(
    Effect.gen(function* () {
      let failed = 0
      const onEvent = ({ _tag }: { readonly _tag: string }) => void (_tag === "RetryScheduled" && failed++)
      const consumer = yield* Consumer.start<string>(queue, { retry, onEvent, concurrency: 10 }, no)
      yield* until("retries", () => failed === count)
      yield* consumer.drain()
    })
  )

const minute = 60_000

interface Expected {
  readonly backoff: Backlog.Backlog["backoff"]
  readonly remark: "delayed" | "backoff" | undefined
}

const topologies: ReadonlyArray<readonly [string, RabbitMqOptions.Options, Expected]> = [
  ["the ladder", { topology: "ladder" }, { backoff: [{ within: minute, count: 3 }], remark: "delayed" }],
  [
    "the ladder of classic queues",
    { queueType: "classic" },
    { backoff: [{ within: minute, count: 3 }], remark: "delayed" }
  ],
  // 60 s are 1,200 units of 50 ms, of which the highest digit are 1,024.
  ["the levels", { topology: "levels" }, { backoff: [{ within: 2 * 1024 * 50, count: 3 }], remark: "delayed" }],
  ["a queue per delay", { topology: "perDelayQueue" }, { backoff: [{ within: minute, count: 3 }], remark: undefined }],
  ["per-message TTL", { topology: "perMessageTtl" }, { backoff: undefined, remark: "backoff" }],
  ["rounds of a waiting queue", { topology: "waitLoop" }, { backoff: undefined, remark: "backoff" }]
]

describe.concurrent.each(topologies)("in %s", (_, options, { backoff, remark }) => {
  test("messages in backoff are counted, listed, and removed by a filter", async () => {
    const queue = queueName("backlog")
    const retry = delays(minute)
    await on({ url, prefix: queueName("p"), ...options }, (broker) =>
      Effect.gen(function* () {
        yield* broker.publish(ids(3).map((id) => outgoing(queue, id)))
        yield* fail(queue, retry, 3)
        const backlog = yield* Backlog.of(broker, { queue, retry })
        assert.deepInclude(backlog, { ready: 0, delayed: 3, undelivered: 0, oldest: 0 })
        assert.deepStrictEqual(backlog.backoff, backoff)
        const { backoff: why, delayed: caveat = "" } = backlog.remarks
        assert.deepStrictEqual(
          [why !== undefined, caveat.includes("share")],
          [remark === "backoff", remark === "delayed"]
        )
        const { count, list, purge } = yield* DelayedMessages.make(queue, { retry })
        const { isWhole, messages, selected } = yield* list()
        assert.deepStrictEqual(messages.map(({ attempts, id }) => `${id} ${attempts}`).toSorted(), [
          "m0 2",
          "m1 2",
          "m2 2"
        ])
        assert.deepStrictEqual([isWhole, selected], [true, 3])
        assert.match(messages[0]!.history[0]!.error, /no/)
        assert.strictEqual((yield* purge({ filter: ({ id }) => id !== "m2" })).removed, 2)
        assert.strictEqual((yield* count()).selected, 1)
      })
    )
  })
})

test.runIf(isAtLeast(one.version, "4.3"))(
  "what a queue delays by itself is counted where the server tells, and cannot be listed",
  async () => {
    const queue = queueName("native")
    const retry = RetryPolicy.make({ maxRetries: 1, backoff: Backoff.constant(minute) })
    const options = { url, prefix: queueName("p"), topology: "native" } as const
    const look = { queue, retry }
    await on(options, (broker) =>
      Effect.gen(function* () {
        yield* Consumer.start<string>(queue, { retry }, no)
        yield* broker.publish([outgoing(queue, "b")])
        yield* until("it is delayed", async () => (await Effect.runPromise(Backlog.of(broker, look))).ready === 0)
        const { delayed, remarks } = yield* Backlog.of(broker, look)
        assert.isUndefined(delayed)
        assert.match(remarks.delayed ?? "", /management/)
        const error = yield* Effect.flip(broker.admin.browse({ queue, from: "delayed", limit: 10 }))
        assert.strictEqual(error.reason, "Unsupported")
      })
    )
    const { managementUrl } = one.broker
    if (managementUrl === undefined) return
    await on({ ...options, management: managementUrl }, (broker) =>
      Effect.gen(function* () {
        yield* until("it is counted", async () => (await Effect.runPromise(Backlog.of(broker, look))).delayed === 1)
        const { backoff } = yield* Backlog.of(broker, look)
        assert.deepStrictEqual([backoff?.length, backoff?.[0]?.count], [1, 1])
        assert.isAtMost(backoff![0]!.within, minute)
      })
    )
  }
)

test("messages that found their queue gone are counted as undelivered", async () => {
  const queue = queueName("gone")
  const prefix = queueName("p")
  await on({ url, prefix }, (broker) =>
    Effect.gen(function* () {
      yield* broker.publish([outgoing(queue, "a", { delay: 5000 })])
      yield* Effect.promise(() => raw(url, (channel) => channel.deleteQueue(queue)))
      const look = Backlog.of(broker, { queue, retry: delays(minute) })
      yield* until("it is aside", async () => (await Effect.runPromise(look)).undelivered === 1)
      const { remarks } = yield* look
      assert.include(remarks.undelivered ?? "", prefix)
    })
  )
})

test("who consumes is counted, and who has stopped is not", async () => {
  const queue = queueName("consumed")
  await on({ url, prefix: queueName("p") }, (broker) =>
    Effect.gen(function* () {
      const look = Backlog.of(broker, { queue, retry: RetryPolicy.make() })
      const consumer = yield* Consumer.start<string>(queue, {}, () => {})
      yield* until("it is there", async () => ((await Effect.runPromise(look)).consumers ?? 0) > 0)
      yield* consumer.drain()
      yield* until("it is gone", async () => (await Effect.runPromise(look)).consumers === 0)
    })
  )
})

test("50 delay queues are counted in time over a line of 50 ms, and none of them is made", async () => {
  const queue = queueName("far")
  const prefix = queueName("p")
  const retry = RetryPolicy.make({
    maxRetries: 30,
    backoff: Backoff.sequence(Array.from({ length: 30 }, (_, index) => (index + 1) * minute))
  })
  const there = (name: string) =>
    raw(url, (channel) => channel.checkQueue(name)).then(
      () => true,
      () => false
    )
  await Effect.runPromise(
    Effect.scoped(
      Effect.gen(function* () {
        const { proxied, proxy } = yield* apart(one)
        yield* Effect.promise(() =>
          on({ url: proxied, prefix }, (broker) =>
            Effect.gen(function* () {
              // One way, so that a request takes 50 ms.
              proxy.delay(25)
              const before = performance.now()
              const { delayed } = yield* Backlog.of(broker, { queue, retry })
              const took = performance.now() - before
              proxy.delay(0)
              assert.strictEqual(delayed, 0)
              // One by one it would be 50 times 150 ms.
              assert.isBelow(took, 4000)
            })
          )
        )
      })
    )
  )
  assert.isFalse(await there(`${prefix}.v1.q.delay.${minute}`))
  assert.isFalse(await there(`${prefix}.v1.q.level.50.0`))
})

test("1,200 messages at one place are listed and removed, all of them", async () => {
  const queue = queueName("many")
  await on({ url, prefix: queueName("p") }, (broker) =>
    Effect.gen(function* () {
      yield* broker.publish(ids(1200).map((id) => outgoing(queue, id, { delay: 10 * minute })))
      const { count, purge } = yield* DelayedMessages.make(queue)
      assert.deepStrictEqual(yield* count(), { selected: 1200, browsed: 1200, isWhole: true })
      const some = yield* purge({ filter: ({ id }) => Number(id.slice(1)) % 3 > 0 })
      assert.deepStrictEqual(some, { removed: 800, browsed: 1200, isWhole: true })
      assert.deepStrictEqual(yield* count(), { selected: 400, browsed: 400, isWhole: true })
    })
  )
})
