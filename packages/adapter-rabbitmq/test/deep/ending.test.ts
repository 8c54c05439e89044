/** A consumer that ends: what it has settled stays settled, and what it gives back is not counted as failed. */
import { RetryPolicy } from "@requeue/core"
import { DeadLetters } from "@requeue/operations"
import * as Effect from "effect/Effect"
import { assert, test } from "vitest"
import * as Version from "../../src/internal/version.ts"
import { shared } from "../real/server.ts"
import { consume, raw, type Run, takeAndLeave } from "./traps/trap.ts"
import { ids, on, outgoing, queueName, until } from "../world.ts"

const { url, version } = await shared()

/** What another client finds: each id, and how often the server has counted it. */
const left = (queue: string) =>
  raw(url, async (channel) => {
    const found: Array<readonly [id: string, count: number]> = []
    for (let message = await channel.get(queue); message !== false; message = await channel.get(queue))
      found.push([String(message.properties.messageId), Number(message.properties.headers?.["x-delivery-count"] ?? 0)])
    return found
  })

// The server hands a quorum queue 32 settlements of a channel at a time, and forgets further ones when it closes.
test.each([100, 500])("%d messages in progress, every other one done right before the end", async (count) => {
  const queue = queueName("ending")
  const names = ids(count * 2)
  const runs: Array<Run> = []
  const isDone = (at: number): boolean => at < count && at % 2 === 0
  await on({ url }, (broker) =>
    Effect.gen(function* () {
      yield* broker.publish(names.map((id) => outgoing(queue, id)))
      const gate = Promise.withResolvers<void>()
      const consumer = yield* consume(queue, runs, { concurrency: count, prefetch: count }, ({ id }) =>
        isDone(names.indexOf(id)) ? Effect.promise(() => gate.promise) : Effect.never
      )
      yield* until("all of them in progress", () => runs.length >= count)
      gate.resolve()
      yield* consumer.drain("1 millis")
    })
  )
  const found = await left(queue)
  assert.deepStrictEqual(
    found.map(([id]) => id).toSorted(),
    names.filter((_, at) => !isDone(at)).toSorted(),
    "what was acknowledged, and nothing else, is gone"
  )
  // Before 4.3 what is given back counts once; one message may have been taken a second time at the end.
  const usual = Version.hasFailureCount(version) ? 0 : 1
  assert.isAtMost(found.filter(([, times]) => times !== usual).length, usual)
})

test("200 letters that were grouped by their causes count as they did", async () => {
  const queue = queueName("looked")
  const names = ids(200)
  await on({ url }, (broker) =>
    Effect.gen(function* () {
      yield* broker.publish(names.map((id) => outgoing(queue, id)))
      const letters = yield* DeadLetters.make(queue)
      assert.strictEqual((yield* letters.group())[0]?.count, names.length)
    })
  )
  const found = await left(queue)
  assert.deepStrictEqual(found.map(([id]) => id).toSorted(), names.toSorted())
  const usual = Version.hasFailureCount(version) ? 0 : 1
  assert.isAtMost(found.filter(([, times]) => times !== usual).length, usual)
})

// Messages that were returned are replaced by copies before a handler sees them.
test("a message that is being replaced as its consumer ends is there once", async () => {
  const queue = queueName("replaced")
  const names = ids(60)
  const retry = RetryPolicy.make({ maxRetries: 100, maxDeliveries: 1000 })
  await on({ url, queueType: "classic" }, (broker) =>
    Effect.gen(function* () {
      yield* broker.publish(names.map((id) => outgoing(queue, id)))
      for (let round = 0; round < 20; round++) {
        yield* Effect.promise(() => takeAndLeave(url, queue, names.length))
        const consumer = yield* consume(queue, [], { prefetch: 100, retry }, () => Effect.never)
        yield* Effect.sleep(round % 5)
        yield* consumer.drain(0)
      }
    })
  )
  const found = await left(queue)
  assert.deepStrictEqual(found.map(([id]) => id).toSorted(), names.toSorted())
})

// A consumer that the server begins at that moment is sent messages, which nobody waits for any more.
test.each([0, 1, 3])("nothing counts because of credit that was given %d ms before the end", async (millis) => {
  const queue = queueName("hasty")
  const names = ids(400)
  const runs: Array<Run> = []
  await on({ url }, (broker) =>
    Effect.gen(function* () {
      yield* broker.publish(names.map((id) => outgoing(queue, id)))
      for (let round = 0; round < 20; round++) {
        const consumer = yield* consume(queue, runs, { concurrency: 7, prefetch: 5 })
        consumer.pause()
        yield* Effect.sleep(0)
        consumer.resume()
        yield* Effect.sleep(millis)
        yield* consumer.drain()
      }
    })
  )
  const found = await left(queue)
  assert.deepStrictEqual([...runs.map(({ id }) => id), ...found.map(([id]) => id)].toSorted(), names.toSorted())
  if (!Version.hasFailureCount(version)) return
  const counted = [...runs.filter(({ attempts }) => attempts > 1), ...found.filter(([, times]) => times > 0)]
  assert.deepStrictEqual(counted, [])
})
