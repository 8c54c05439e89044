/** Batches of FIFO queues: messages of a group together, in order, and the first that fails holds back its group. */
import { Backoff, BatchPolicy, Consumer, Failure, type Handler, RetryPolicy } from "@requeue/core"
import * as Effect from "effect/Effect"
import { assert, describe, test } from "vitest"
import { each } from "./strict.ts"
import { drain, idOf, on, outgoing, queueName, type Run, until, untilEmpty } from "../real/world.ts"

const servers = await each("fauxqs", "elasticmq")

const retry = RetryPolicy.make({ maxRetries: 2, backoff: Backoff.constant(1000) })
const batch = BatchPolicy.make({ maxBatchSize: 10, maxBatchTimeout: 300 })

/** Ids begin with the name of their group. */
const send = (queue: string, ids: ReadonlyArray<string>) =>
  ids.map((id) => outgoing(queue, id, { headers: { "message-group-id": id.slice(0, 1) } }))

const groupOf = ({ id }: { readonly id: string }): string => id.slice(0, 1)

/** Writes the batches down, and finds those that have a group together. */
const watched = (handle: (batch: Handler.Batch<unknown>) => unknown = () => {}) => {
  const batches: Array<string> = []
  const runs: Array<Run> = []
  const faults: Array<string> = []
  const atWork = new Set<string>()
  return {
    batches,
    runs,
    faults,
    handler: (got: Handler.Batch<unknown>) => {
      const groups = new Set(got.messages.map(groupOf))
      for (const group of groups) if (atWork.has(group)) faults.push(`two batches have ${group}`)
      for (const group of groups) atWork.add(group)
      batches.push(got.messages.map(({ id }) => id).join(" "))
      for (const { attempts, id } of got.messages) runs.push({ id, attempts, at: Date.now() })
      return Effect.gen(function* () {
        yield* Effect.sleep(20)
        handle(got)
      }).pipe(Effect.ensuring(Effect.sync(() => groups.forEach((group) => atWork.delete(group)))))
    }
  }
}

/** Milliseconds: three quarters of a long poll that nobody waits for. */
const soon = 15_000

describe.concurrent.each(servers)("$name", ({ another, behind }) => {
  test("what a paused consumer gives back of a group comes at once when it goes on, though a poll is under way", async () => {
    await using own = await another()
    const queue = `${queueName("paused")}.fifo`
    const { handler, runs } = watched(({ messages }) => {
      if (messages[1]?.attempts === 1) messages[1].retry({ delay: 0 })
    })
    await on({ url: own.url, waitTime: 20_000 }, (broker) =>
      Effect.gen(function* () {
        yield* broker.publish(send(queue, ["a0", "a1", "a2", "a3"]))
        const consumer = yield* Consumer.startBatch(queue, { batch, concurrency: 2 }, handler)
        yield* until("the first batch", () => runs.length > 0)
        consumer.pause()
        yield* until("nothing in progress", () => consumer.health().inProgress === 0)
        consumer.resume()
        yield* until("the others", () => runs.some(({ id }) => id === "a3") && runs.length >= 7, soon)
      })
    )
  })

  test("what a consumer that ends gives back of a group comes to the next one at once, though a poll is under way", async () => {
    await using own = await another()
    const queue = `${queueName("ended")}.fifo`
    const first = watched()
    const second = watched()
    const ids = Array.from({ length: 30 }, (_, index) => `a${index}`)
    await on({ url: own.url, waitTime: 20_000 }, (broker) =>
      Effect.gen(function* () {
        const consumer = yield* Consumer.startBatch(queue, { batch, concurrency: 2 }, first.handler)
        yield* broker.publish(send(queue, ids))
        yield* until("a batch", () => first.runs.length > 0)
        yield* consumer.drain()
        yield* Consumer.startBatch(queue, { batch }, second.handler)
        const handled = () => new Set([...first.runs, ...second.runs].map(({ id }) => id)).size
        yield* until("all of them", () => handled() === ids.length, soon)
        yield* untilEmpty(behind, queue)
      })
    )
  })

  test("one group comes in batches, as it was sent", async () => {
    await using own = await another()
    const queue = `${queueName("one")}.fifo`
    const ids = Array.from({ length: 30 }, (_, index) => `a${index}`)
    const { batches, handler } = watched()
    await on({ url: own.url }, (broker) =>
      Effect.gen(function* () {
        yield* broker.publish(send(queue, ids))
        yield* Consumer.startBatch(queue, { batch }, handler)
        yield* until("all of them", () => batches.join(" ").split(" ").length >= ids.length)
        yield* untilEmpty(behind, queue)
      })
    )
    assert.deepStrictEqual(
      batches,
      [0, 10, 20].map((from) => ids.slice(from, from + 10).join(" "))
    )
  })

  test("the first that fails comes again with those behind it, and other groups go on", async () => {
    await using own = await another()
    const queue = `${queueName("held")}.fifo`
    const { batches, handler, runs } = watched(({ messages }) => {
      for (const message of messages) {
        if (message.id === "a2" && message.attempts < 3) message.retry()
        else message.ack()
      }
    })
    await on({ url: own.url }, (broker) =>
      Effect.gen(function* () {
        yield* broker.publish(send(queue, ["a1", "a2", "a3", "a4", "b1", "b2"]))
        yield* Consumer.startBatch(queue, { batch, retry, concurrency: 2 }, handler)
        yield* untilEmpty(behind, queue)
      })
    )
    const ofA = batches.map((ids) =>
      ids
        .split(" ")
        .filter((id) => id.startsWith("a"))
        .join(" ")
    )
    assert.deepStrictEqual(
      ofA.filter((ids) => ids !== ""),
      ["a1 a2 a3 a4", "a2 a3 a4", "a2 a3 a4"]
    )
    assert.deepStrictEqual(
      runs.filter((run) => groupOf(run) === "b").map(({ id }) => id),
      ["b1", "b2"]
    )
    assert.deepStrictEqual((await drain(behind, `${queue}.dlq`)).map(idOf), [])
  })

  test("one that is given up lets its group go on", async () => {
    await using own = await another()
    const queue = `${queueName("dead")}.fifo`
    const { batches, handler } = watched(({ messages }) => {
      for (const message of messages)
        if (message.id === "a2") message.fail(new Failure.PermanentError({ message: "never" }))
    })
    await on({ url: own.url }, (broker) =>
      Effect.gen(function* () {
        yield* broker.publish(send(queue, ["a1", "a2", "a3"]))
        yield* Consumer.startBatch(queue, { batch, retry }, handler)
        yield* untilEmpty(behind, queue)
      })
    )
    assert.deepStrictEqual(batches, ["a1 a2 a3"])
    assert.deepStrictEqual((await drain(behind, `${queue}.dlq`)).map(idOf), ["a2"])
  })

  test("a batch that is smaller than its group leaves the rest for the next one, which another batch does not take", async () => {
    await using own = await another()
    const queue = `${queueName("small")}.fifo`
    const ids = ["a", "b", "c"].flatMap((group) => Array.from({ length: 12 }, (_, index) => `${group}${10 + index}`))
    const failed = new Set<string>()
    const { faults, handler, runs } = watched(({ messages }) => {
      for (const message of messages) {
        if (Number(message.id.slice(1)) % 4 > 0 || failed.has(message.id)) continue
        failed.add(message.id)
        message.retry({ delay: 0 })
      }
    })
    await on({ url: own.url, fifoRetry: "block" }, (broker) =>
      Effect.gen(function* () {
        yield* broker.publish(send(queue, ids))
        const small = BatchPolicy.make({ maxBatchSize: 4, maxBatchTimeout: 50 })
        yield* Consumer.startBatch(queue, { batch: small, retry, concurrency: 4 }, handler)
        yield* untilEmpty(behind, queue)
      })
    )
    assert.deepStrictEqual(faults, [])
    for (const group of ["a", "b", "c"]) {
      const mine = runs.filter((run) => groupOf(run) === group).map(({ id }) => id)
      // The last run of each is the one that ended it.
      const ends = [...new Set(mine.toReversed())].toReversed()
      assert.deepStrictEqual(
        ends,
        ids.filter((id) => id.startsWith(group))
      )
    }
    assert.strictEqual(failed.size, 9)
  })
})
