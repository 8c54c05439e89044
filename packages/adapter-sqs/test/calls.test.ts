/** What a message costs: API calls, as the proxy in front of SQS counts them. */
import * as BatchPolicy from "@requeue/core/BatchPolicy"
import type { Service } from "@requeue/core/Broker"
import * as Consumer from "@requeue/core/Consumer"
import * as Effect from "effect/Effect"
import { assert, describe, test, vi } from "vitest"
import { strict } from "./strict.ts"
import { ids, on, outgoing, queueName, until, untilEmpty } from "./world.ts"

vi.setConfig({ testTimeout: 60_000 })

const { behind, proxy, url } = await strict()

const count = 1000

/** 400 messages a second, in batches of 20. */
const steady = (broker: Service, queue: string) =>
  Effect.gen(function* () {
    const names = ids(count)
    for (let from = 0; from < count; from += 20) {
      yield* broker.publish(names.slice(from, from + 20).map((id) => outgoing(queue, id)))
      yield* Effect.sleep(50)
    }
  })

const handle = Effect.sleep(5)

describe(`${count} messages at a steady 400 a second: at most 0.25 calls each to receive and delete them`, () => {
  test.each<[name: string, consume: (queue: string, seen: () => void) => ReturnType<typeof Consumer.start<unknown>>]>([
    [
      "in batches of 10",
      (queue, seen) =>
        Consumer.startBatch(
          queue,
          { batch: BatchPolicy.make({ maxBatchSize: 10 }), concurrency: 4 },
          ({ messages }) => {
            messages.forEach(seen)
            return handle
          }
        )
    ],
    [
      "in batches of 100",
      (queue, seen) =>
        Consumer.startBatch(queue, { batch: BatchPolicy.make({ maxBatchSize: 100 }) }, ({ messages }) => {
          messages.forEach(seen)
          return handle
        })
    ],
    [
      "one by one, 20 at a time",
      (queue, seen) =>
        Consumer.start(queue, { concurrency: 20 }, () => {
          seen()
          return handle
        })
    ]
  ])("%s", async (name, consume) => {
    const queue = queueName("calls")
    let seen = 0
    const before = proxy.calls()
    const spent = (action: string): number => (proxy.calls()[action] ?? 0) - (before[action] ?? 0)
    await on({ url }, (broker) =>
      Effect.gen(function* () {
        yield* consume(queue, () => seen++)
        yield* steady(broker, queue)
        yield* until("all of them", () => seen >= count)
        yield* untilEmpty(behind, queue)
      })
    )
    const [received, deleted] = [spent("ReceiveMessage"), spent("DeleteMessageBatch")]
    const each = (received + deleted) / count
    console.log(`${name}: ${received} receives, ${deleted} deletes, ${each.toFixed(3)} calls a message`)
    assert.strictEqual(seen, count)
    assert.isAtMost(each, 0.25)
    // Nothing else is called while all is well.
    assert.strictEqual(spent("DeleteMessage") + spent("ChangeMessageVisibilityBatch"), 0)
  })
})

test("an idle consumer calls once for each long poll", async () => {
  const queue = queueName("idle")
  await on({ url, waitTime: 2000 }, () =>
    Effect.gen(function* () {
      yield* Consumer.start(queue, { concurrency: 50 }, () => {})
      yield* Effect.sleep(500)
      const before = proxy.calls()["ReceiveMessage"] ?? 0
      yield* Effect.sleep(3500)
      assert.isAtMost((proxy.calls()["ReceiveMessage"] ?? 0) - before, 2)
    })
  )
})
