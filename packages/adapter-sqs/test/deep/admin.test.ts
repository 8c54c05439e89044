/** What operators see and do, on standard and FIFO queues. */
import { Backlog, DeadLetters, RetryPolicy } from "@requeue/core"
import * as Effect from "effect/Effect"
import { assert, describe, test } from "vitest"
import { strict } from "./strict.ts"
import { bytes, ids, left, on, outgoing, queueName, urlOf } from "../real/world.ts"

const { behind, proxy, url } = await strict()

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

  test("is looked at, oldest first, and everything is there again", async () => {
    const queue = named(queueName("peek"))
    await on({ url }, (broker) =>
      Effect.gen(function* () {
        const headers = (id: string) => ({ "message-group-id": id })
        yield* broker.publish(
          ids(25).map((id, index) => outgoing(queue, id, { headers: headers(id), now: 1000 + index }))
        )
        const some = yield* broker.admin.peek(queue, 3)
        assert.deepStrictEqual([some.length, some.every(({ receipt }) => receipt === undefined)], [3, true])
        const all = yield* broker.admin.peek(queue, 100)
        assert.deepStrictEqual(
          all.map(({ metadata }) => metadata.id),
          ids(25)
        )
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

test("a purge that cannot delete says so", async () => {
  const queue = queueName("denied")
  await on({ url }, (broker) =>
    Effect.gen(function* () {
      yield* broker.publish([outgoing(queue, "a")])
      proxy.deny(["DeleteMessage"])
      const error = yield* Effect.flip(broker.admin.purge(queue))
      proxy.deny([])
      assert.deepInclude(error, { reason: "AccessRefused", queue })
    })
  )
})

test("a queue that is not there is empty, and looking at it makes none", async () => {
  const queue = queueName("nowhere")
  await on({ url }, ({ admin }) =>
    Effect.gen(function* () {
      const seen = [yield* admin.counts(queue), yield* admin.peek(queue, 1), yield* admin.purge(queue)]
      assert.deepStrictEqual(seen, [{ ready: 0, inFlight: 0, delayed: 0, isMissing: true }, [], 0])
      const missing = yield* Effect.promise(() => urlOf(behind, queue).catch(({ name }: Error) => name))
      assert.strictEqual(missing, "QueueDoesNotExist")
    })
  )
})

test("what SQS itself has moved to the dead letters is listed with the others", async () => {
  const queue = queueName("native")
  await on({ url }, (broker) =>
    Effect.gen(function* () {
      yield* broker.publish([outgoing(queue, "a")])
      yield* Effect.promise(() => behind.createQueue({ QueueName: `${queue}-dlq` }))
      const [work, dead] = yield* Effect.promise(() =>
        Promise.all([urlOf(behind, queue), urlOf(behind, `${queue}.dlq`)])
      )
      yield* Effect.promise(async () => {
        const { Attributes = {} } = await behind.getQueueAttributes({ QueueUrl: dead, AttributeNames: ["QueueArn"] })
        const RedrivePolicy = JSON.stringify({ deadLetterTargetArn: Attributes.QueueArn, maxReceiveCount: 1 })
        await behind.setQueueAttributes({ QueueUrl: work, Attributes: { RedrivePolicy } })
        await behind.receiveMessage({ QueueUrl: work, VisibilityTimeout: 0 })
        await behind.receiveMessage({ QueueUrl: work })
      })
      const letters = yield* DeadLetters.make(`${queue}.dlq`)
      const [letter] = yield* letters.list()
      assert.deepStrictEqual([letter?.id, letter?.body], ["a", Buffer.from(bytes('"a"'))])
    })
  )
})
