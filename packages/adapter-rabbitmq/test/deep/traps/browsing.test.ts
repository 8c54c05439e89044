/** Browsing dead letters changes nothing: not their number, their order, their attempts, nor what becomes of them. */
import { Broker, RetryPolicy } from "@requeue/core"
import { Metadata } from "@requeue/core/port"
import { DeadLetters } from "@requeue/operations"
import * as Effect from "effect/Effect"
import { assert, describe, test } from "vitest"
import type { RabbitMqOptions } from "../../../src/index.ts"
import { shared } from "../../real/server.ts"
import { browse, drainIds, ids, on, outgoing, queueName, until } from "../../world.ts"
import { consume, raw, type Run, takeAndLeave } from "./trap.ts"

const { url } = await shared()

const names = ids(60)

/** Puts letters from `queue` into its dead-letter queue. */
const publishLetters = (broker: Broker.Service, queue: string) =>
  broker.publish(
    names.map((id) => {
      const message = outgoing(`${queue}.dlq`, id)
      const error = { name: "Error", message: "no" }
      const deadLetter = { queue, attempts: 4, reason: "retries-exhausted", at: Date.now(), error } as const
      return { ...message, metadata: { ...message.metadata, deadLetter } satisfies Metadata.Metadata }
    })
  )

const listed = Effect.fnUntraced(function* (broker: Broker.Service, queue: string, times: number) {
  const letters = yield* DeadLetters.make(`${queue}.dlq`)
  const seen: Array<string> = []
  for (let left = times; left > 0; left--) {
    const all = yield* letters.list()
    if (all.length !== names.length || all.some(({ id }, at) => id !== names[at]))
      seen.push(`${left} left: ${all.map(({ id }) => id).join()}`)
  }
  assert.deepStrictEqual(seen, [])
  assert.strictEqual(yield* letters.count, names.length)
  const browsed = yield* browse(broker, `${queue}.dlq`, 100)
  assert.deepStrictEqual(
    browsed.map(({ attempts, metadata }) => [metadata.id, attempts, metadata.deadLetter?.attempts]),
    names.map((id) => [id, 1, 4])
  )
  return letters
})

/** Insists that every message is run once, and that its first run is the first. */
const runAll = Effect.fnUntraced(function* (queue: string) {
  const runs: Array<Run> = []
  const retry = RetryPolicy.make({ maxRetries: 0, maxDeliveries: 1, deadLetter: "discard" })
  yield* consume(queue, runs, { retry })
  yield* until("all of them", () => runs.length >= names.length)
  assert.deepStrictEqual(runs.map(({ id }) => id).toSorted(), names.toSorted())
  assert.deepStrictEqual(new Set(runs.map(({ attempts }) => attempts)), new Set([1]))
})

const cases: ReadonlyArray<readonly [what: string, options: RabbitMqOptions.Options, times: number]> = [
  // More than its delivery limit of 1,000.
  ["a quorum queue", {}, 1100],
  ["a quorum queue whose limit is smaller", { deliveryLimit: 20 }, 100],
  ["a classic queue", { queueType: "classic" }, 100]
]

describe.each(cases)("letters in %s", (_, options, times) => {
  test(`are as they were after browsing ${times} times, and redriven ones begin anew`, async () => {
    const queue = queueName("browsed")
    await on({ url, ...options }, (broker) =>
      Effect.gen(function* () {
        yield* publishLetters(broker, queue)
        const letters = yield* listed(broker, queue, times)
        assert.strictEqual((yield* letters.redrive({ create: true })).redriven, names.length)
        yield* runAll(queue)
      })
    )
    assert.deepStrictEqual(await drainIds(url, `${queue}.dlq`), [])
  })

  test("are run by a consumer of their queue as if nobody had browsed", async () => {
    const queue = queueName("consumed")
    await on({ url, ...options }, (broker) =>
      Effect.gen(function* () {
        yield* publishLetters(broker, queue)
        yield* listed(broker, queue, 15)
        yield* runAll(`${queue}.dlq`)
      })
    )
    assert.deepStrictEqual(await drainIds(url, `${queue}.dlq`), [])
  })

  // The server itself puts what such a consumer had behind the others.
  test("are all there, and uncounted, after browsers that end with their connection", async () => {
    const queue = queueName("cut")
    await on({ url, ...options }, (broker) =>
      Effect.gen(function* () {
        yield* publishLetters(broker, queue)
        const letters = yield* DeadLetters.make(`${queue}.dlq`)
        for (let left = 60; left > 0; left--) {
          yield* Effect.promise(() => takeAndLeave(url, `${queue}.dlq`, 20))
          while ((yield* letters.count) !== names.length) yield* Effect.sleep(5)
          if (left % 4 === 0) assert.lengthOf(yield* letters.list(), names.length)
        }
        const browsed = yield* browse(broker, `${queue}.dlq`, 100)
        assert.deepStrictEqual(browsed.map(({ metadata }) => metadata.id).toSorted(), names.toSorted())
        assert.isTrue(browsed.every(({ attempts }) => attempts === 1))
      })
    )
  })
})

test.each([1, 3, 20])(
  "messages of somebody else's quorum queue with a limit of %d stay what they are",
  async (limit) => {
    const queue = queueName("theirs")
    const args = { "x-queue-type": "quorum", "x-delivery-limit": limit }
    const deaths = [{ queue: "orders", reason: "rejected", exchange: "", count: 1, "routing-keys": ["orders"] }]
    const theirs: Readonly<Record<string, unknown>> = { n: 1, "x-death": deaths }
    await raw(url, async (channel) => {
      await channel.assertQueue(queue, { arguments: args })
      for (const messageId of names) channel.sendToQueue(queue, Buffer.from(messageId), { messageId, headers: theirs })
    })
    await on({ url, queues: { [queue]: { assert: "passive" } } }, (broker) =>
      Effect.gen(function* () {
        for (let left = 30; left > 0; left--) {
          const seen = yield* browse(broker, queue, 100)
          assert.deepStrictEqual(
            seen.map(({ metadata }) => metadata.id),
            names
          )
        }
      })
    )
    const headers = await raw(url, async (channel) => {
      const message = await channel.get(queue, { noAck: true })
      return message === false ? undefined : message.properties.headers
    })
    assert.deepInclude(headers, theirs)
    assert.notProperty(headers, "requeue")
    assert.deepStrictEqual(await drainIds(url, queue), names.slice(1))
  }
)
