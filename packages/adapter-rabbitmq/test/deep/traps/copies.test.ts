/** Properties that a copy must leave behind. */
import { Backoff, type Event, RetryPolicy } from "@requeue/core"
import * as Effect from "effect/Effect"
import { assert, test } from "vitest"
import { shared } from "../../real/server.ts"
import { on, outgoing, queueName, quiet, until } from "../../world.ts"
import { consume, no, raw, type Run } from "./trap.ts"

const { url } = await shared()

// Servers up to 3.13 drop a message whose x-death says that it has been in a queue before.
test("a copy leaves x-death behind: five retries through several levels are six deliveries", async () => {
  const queue = queueName("death")
  const runs: Array<Run> = []
  const events: Array<Event.Event> = []
  await on({ url, topology: "levels" }, (broker) =>
    Effect.gen(function* () {
      yield* broker.publish([outgoing(queue, "a")])
      const retry = RetryPolicy.make({ maxRetries: 5, backoff: Backoff.constant(150) })
      yield* consume(queue, runs, { retry, onEvent: (event) => events.push(event) }, no)
      yield* until("its death", () => events.some(({ _tag }) => _tag === "DeadLettered"))
      yield* quiet(broker)
    })
  )
  assert.deepStrictEqual(
    runs.map(({ attempts }) => attempts),
    [1, 2, 3, 4, 5, 6]
  )
  const letter = await raw(url, (channel) => channel.get(`${queue}.dlq`, { noAck: true }))
  assert.isObject(letter)
  const headers = Object.keys((letter || undefined)?.properties.headers ?? {})
  assert.deepStrictEqual(
    headers.filter((name) => /^x-(first-|last-)?death|^CC$|^BCC$/.test(name)),
    []
  )
})

// In a delay queue, the shorter of both TTLs counts; in a dead-letter queue, the letter is gone when it ends.
test("a copy leaves a per-message expiration behind: it comes no earlier, and its dead letter stays", async () => {
  const queue = queueName("expiration")
  const runs: Array<Run> = []
  const events: Array<Event.Event> = []
  await on({ url }, () =>
    Effect.gen(function* () {
      const retry = RetryPolicy.make({ maxRetries: 1 })
      yield* consume(queue, runs, { retry, retryDelay: 1000, onEvent: (event) => events.push(event) }, no)
      yield* Effect.promise(() =>
        raw(url, async (channel) =>
          channel.sendToQueue(queue, Buffer.from('"x"'), { messageId: "x", expiration: "300", persistent: true })
        )
      )
      yield* until("its death", () => events.some(({ _tag }) => _tag === "DeadLettered"))
    })
  )
  assert.isAtLeast(runs[1]!.at - runs[0]!.at, 1000)
  const letter = await raw(url, (channel) => channel.get(`${queue}.dlq`, { noAck: true }))
  assert.isObject(letter)
  const { expiration, messageId } = (letter || undefined)?.properties ?? {}
  assert.deepStrictEqual([messageId, expiration], ["x", undefined])
})
