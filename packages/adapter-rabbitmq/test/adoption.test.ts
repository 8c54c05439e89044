/** Queues of every kind that somebody else has made, consumed as they are under three policies: the table in the README. */
import { Backoff, type Event, RetryPolicy } from "@requeue/core"
import * as Effect from "effect/Effect"
import { assert, describe, test } from "vitest"
import type { RabbitMqOptions } from "../src/index.ts"
import { shared } from "./server.ts"
import { consume, no, raw, type Run } from "./traps/trap.ts"
import { drainIds, on, queueName, until } from "./world.ts"

const { broker: server, url } = await shared()
const management = server.managementUrl

type Arguments = Readonly<Record<string, unknown>>

const policies = {
  "25 retries at once": [RetryPolicy.make({ maxRetries: 25 }), 26],
  "2 delayed retries": [RetryPolicy.make({ maxRetries: 2, backoff: Backoff.constant(300) }), 3],
  "no retry": [RetryPolicy.make({ maxRetries: 0 }), 1]
} as const

const kinds: Readonly<Record<string, Arguments>> = {
  classic: {},
  quorum: { "x-queue-type": "quorum" },
  "quorum with limit 10": { "x-queue-type": "quorum", "x-delivery-limit": 10 },
  "classic with TTL": { "x-message-ttl": 60_000 },
  "quorum with TTL": { "x-queue-type": "quorum", "x-message-ttl": 60_000 },
  "DLX of its own": { "x-queue-type": "quorum", "x-dead-letter-exchange": "amq.fanout" },
  "drop-head": { "x-queue-type": "quorum", "x-max-length": 50, "x-overflow": "drop-head" },
  "reject-publish": { "x-queue-type": "quorum", "x-max-length": 50, "x-overflow": "reject-publish" },
  "reject-publish-dlx": {
    "x-max-length": 50,
    "x-overflow": "reject-publish-dlx",
    "x-dead-letter-exchange": "amq.fanout"
  },
  "single active consumer": { "x-queue-type": "quorum", "x-single-active-consumer": true },
  lazy: { "x-queue-mode": "lazy" },
  priority: { "x-max-priority": 5 }
}

const make = (queue: string, args: Arguments, messages: ReadonlyArray<string>) =>
  raw(url, async (channel) => {
    await channel.assertQueue(queue, { durable: true, arguments: args })
    for (const messageId of messages)
      channel.sendToQueue(queue, Buffer.from('"x"'), { persistent: true, messageId, priority: 3 })
  })

const failing = ["a", "b", "c"]

/** Consumes three messages that fail and one that does not, until all have ended, and checks the books. */
const balance = async (
  queue: string,
  options: RabbitMqOptions.Options,
  [retry, attempts]: readonly [RetryPolicy.RetryPolicy, number]
) => {
  const runs: Array<Run> = []
  const ends = new Map<string, Event.Event["_tag"]>()
  const onEvent = (event: Event.Event) => {
    if (event._tag === "Succeeded" || event._tag === "DeadLettered" || event._tag === "Dropped")
      ends.set(event.id, event._tag)
  }
  await on({ url, ...options }, () =>
    Effect.gen(function* () {
      yield* consume(queue, runs, { retry, onEvent }, ({ id }) => (failing.includes(id) ? no() : undefined))
      yield* until(
        () => `four ends, there were ${JSON.stringify([...ends])} after ${runs.length} runs`,
        () => ends.size === failing.length + 1
      )
    })
  )
  for (const id of failing) {
    const seen = runs.filter((run) => run.id === id).map((run) => run.attempts)
    assert.deepStrictEqual(
      seen,
      Array.from({ length: attempts }, (_, index) => index + 1),
      `attempts of ${id}`
    )
  }
  assert.strictEqual(ends.get("good"), "Succeeded")
  assert.deepStrictEqual((await drainIds(url, `${queue}.dlq`)).toSorted(), failing)
  // A single active consumer's queue cannot be looked into.
  assert.strictEqual((await raw(url, (channel) => channel.checkQueue(queue))).messageCount, 0)
}

const cells = Object.entries(kinds).flatMap(([kind, args]) =>
  Object.entries(policies).map(([policy, cell]) => [kind, policy, args, cell] as const)
)

describe.concurrent.each([
  ["nobody but the server's refusals to tell", undefined],
  ["the management interface to tell", management]
] as const)("with %s", (_, address) => {
  test.each(cells)("%s, %s", async (...[, , args, cell]) => {
    const queue = queueName("kind")
    await make(queue, args, [...failing, "good"])
    const told = address === undefined ? {} : { management: address }
    await balance(queue, { ...told, queues: { [queue]: { assert: "passive" } } }, cell)
  })
})
