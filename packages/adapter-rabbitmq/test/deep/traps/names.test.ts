/** Names that meet in routing keys, and names that are long. */
import { Backoff, type Event, RetryPolicy } from "@requeue/core"
import * as Effect from "effect/Effect"
import { assert, test } from "vitest"
import { shared } from "../../real/server.ts"
import { drainIds, on, outgoing, queueName, quiet, reasonOf, until } from "../../world.ts"
import { consume, no, type Run } from "./trap.ts"

const { url } = await shared()

test.each(["levels", "ladder"] as const)(
  "through %s, a queue v2 gets nothing of orders.v2, nor of what looks like a pattern",
  async (topology) => {
    const base = queueName("x")
    const queues = [`v2.${base}`, `orders.v2.${base}`, `#.${base}`, `*.v2.${base}`]
    const retry = RetryPolicy.make({ backoff: Backoff.constant(200) })
    const failOnce = (message: { readonly attempts: number }) => (message.attempts === 1 ? no() : undefined)
    const seen = new Map<string, Array<Run>>(queues.map((queue) => [queue, []]))
    await on({ url, topology }, (broker) =>
      Effect.gen(function* () {
        for (const queue of queues) yield* consume(queue, seen.get(queue)!, { retry }, failOnce)
        yield* broker.publish(queues.map((queue) => outgoing(queue, queue, { delay: 350 })))
        yield* until("two each", () => queues.every((queue) => seen.get(queue)!.length > 1))
        yield* quiet(broker)
      })
    )
    for (const [queue, runs] of seen) {
      assert.deepStrictEqual(
        runs.map(({ id }) => id),
        [queue, queue]
      )
    }
  }
)

// Delays that travel in the routing key leave less than its 255 bytes for the name: 28 levels leave 199.
test.each([199, 200])("queues with names of %d characters wait, retry and die as others do", async (length) => {
  const queue = queueName("n").padEnd(length, "n")
  const runs: Array<Run> = []
  const events: Array<Event.Event> = []
  await on({ url, topology: "levels" }, (broker) =>
    Effect.gen(function* () {
      const retry = RetryPolicy.make({ maxRetries: 1, backoff: Backoff.constant(100) })
      yield* consume(queue, runs, { retry, onEvent: (event) => events.push(event) }, no)
      yield* broker.publish([outgoing(queue, "a", { delay: 86_400_000 - 1 }), outgoing(queue, "b", { delay: 50 })])
      yield* until("its death", () => events.some(({ _tag }) => _tag === "DeadLettered"))
    })
  )
  assert.deepStrictEqual(await drainIds(url, `${queue}.dlq`), ["b"])
})

// Of 200 characters at most, as all names.
test.each([
  ["queue", "\u00e9".repeat(128), /queue: .*256 bytes.*at most 255.*shorter/],
  ["dead-letter queue", "\u00e9".repeat(126), /retry.deadLetter: .*256 bytes.*at most 255.*shorter/]
])("a %s with a name that AMQP cannot carry is refused with the limit", async (kind, queue, told) => {
  await on({ url }, (broker) =>
    Effect.gen(function* () {
      const errors = [
        yield* Effect.flip(consume(queue, [], {})),
        ...(kind === "queue" ? [yield* Effect.flip(broker.publish([outgoing(queue, "a")]))] : [])
      ]
      for (const error of errors) {
        assert.strictEqual(reasonOf(error), "Unsupported")
        assert.match(String(error), told)
      }
    })
  )
})
