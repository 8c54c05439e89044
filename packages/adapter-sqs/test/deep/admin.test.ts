/** What operators see and do, on standard and FIFO queues. */
import { Port } from "@requeue/conformance"
import { RetryPolicy } from "@requeue/core"
import { Backlog } from "@requeue/core/port"
import * as Effect from "effect/Effect"
import { assert, describe, test } from "vitest"
import { strict } from "./strict.ts"
import { ids, left, on, outgoing, queueName, urlOf } from "../real/world.ts"

const { behind, url } = await strict()

describe.each([
  ["a standard queue", (queue: string) => queue],
  ["a FIFO queue", (queue: string) => `${queue}.fifo`]
])("%s", (_, named) => {
  test("is counted: waiting, in somebody's hands, delayed", async () => {
    const queue = named(queueName("counts"))
    await on({ url }, (broker) =>
      Effect.gen(function* () {
        const groups = ids(5).map((id) => outgoing(queue, id, { headers: { "message-group-id": id } }))
        yield* broker.publish(groups)
        if (!queue.endsWith(".fifo")) yield* broker.publish([outgoing(queue, "late", { delay: 60_000 })])
        const QueueUrl = yield* Effect.promise(() => urlOf(behind, queue))
        yield* Effect.promise(() => behind.receiveMessage({ QueueUrl, MaxNumberOfMessages: 2 }))
        const delayed = queue.endsWith(".fifo") ? 0 : 1
        assert.deepStrictEqual(yield* broker.admin.counts(queue), { ready: 3, inFlight: 2, delayed })
        const { remarks, ...told } = yield* Backlog.of(broker, { queue, retry: RetryPolicy.make() })
        const unknown = { backoff: undefined, oldest: undefined, consumers: undefined }
        assert.deepStrictEqual(told, { ready: 3, inFlight: 2, delayed, undelivered: 0, ...unknown })
        assert.match(remarks.oldest ?? "", /ApproximateAgeOfOldestMessage/)
      })
    )
  })

  test("is browsed, and everything is there again", async () => {
    const queue = named(queueName("browsed"))
    await on({ url }, (broker) =>
      Effect.gen(function* () {
        const headers = (id: string) => ({ "message-group-id": id })
        yield* broker.publish(
          ids(25).map((id, index) => outgoing(queue, id, { headers: headers(id), now: 1000 + index }))
        )
        const some = yield* Port.oldest(broker, queue, 3)
        assert.strictEqual(some.length, 3)
        const all = yield* Port.oldest(broker, queue, 100)
        assert.deepStrictEqual(all.map(({ metadata }) => metadata.id).toSorted(), ids(25).toSorted())
        assert.deepInclude(yield* broker.admin.counts(queue), { ready: 25, inFlight: 0 })
      })
    )
  })

  test("is purged of what waits, and told how much that was", async () => {
    const queue = named(queueName("purge"))
    await on({ url }, (broker) =>
      Effect.gen(function* () {
        const grouped = (id: string) => outgoing(queue, id, { headers: { "message-group-id": id } })
        yield* broker.publish([grouped("held")])
        const QueueUrl = yield* Effect.promise(() => urlOf(behind, queue))
        yield* Effect.promise(() => behind.receiveMessage({ QueueUrl }))
        yield* broker.publish(ids(43).map(grouped))
        assert.strictEqual(yield* broker.admin.purge(queue), 43)
        assert.strictEqual(yield* Effect.promise(() => left(behind, queue)), 1)
      })
    )
  })
})
