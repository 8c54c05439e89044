/** Queues that are not there, are full, or are other ones. */
import { type Event, RetryPolicy } from "@requeue/core"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import { assert, test } from "vitest"
import { shared } from "../../real/server.ts"
import { drainIds, ids, on, outgoing, queueName, quiet, reasonOf, until } from "../../world.ts"
import { consume, no, raw, type Run } from "./trap.ts"

const { url } = await shared()

// 32 dead letters whose target is gone hold up all others of their queue.
test("a delayed message for a deleted queue is kept aside, and holds up no other", async () => {
  const [gone, queue, prefix] = [queueName("gone"), queueName("here"), queueName("p").slice(0, 20)]
  const runs: Array<Run> = []
  await on({ url, topology: "levels", prefix }, (broker) =>
    Effect.gen(function* () {
      yield* consume(queue, runs, {})
      const lost = Array.from({ length: 40 }, (_, index) => outgoing(gone, `lost${index}`, { delay: 800 }))
      yield* broker.publish(lost)
      yield* Effect.promise(() => raw(url, (channel) => channel.deleteQueue(gone)))
      yield* broker.publish([outgoing(queue, "b", { delay: 800 })])
      yield* until("the other one", () => runs.length === 1)
      const kept: Array<string> = []
      yield* until("those that are kept aside", async () => {
        kept.push(...(await drainIds(url, `${prefix}.v1.q.undelivered`)))
        return new Set(kept).size >= 40
      })
      assert.deepStrictEqual(kept.toSorted(), lost.map(({ metadata }) => metadata.id).toSorted())
    })
  )
})

test("where nothing may be declared, an unroutable dead letter leaves its message in the queue", async () => {
  const queue = queueName("unroutable")
  const events: Array<Event.Event> = []
  await raw(url, (channel) => channel.assertQueue(queue, { arguments: { "x-queue-type": "quorum" } }))
  await on({ url, queues: { [queue]: { assert: "never" }, [`${queue}.dlq`]: { assert: "never" } } }, (broker) =>
    Effect.gen(function* () {
      yield* Effect.promise(() => raw(url, (channel) => channel.assertQueue(`${queue}.dlq`)))
      const retry = RetryPolicy.make({ maxRetries: 0 })
      yield* consume(queue, [], { retry, onEvent: (event) => events.push(event) }, no)
      yield* Effect.promise(() => raw(url, (channel) => channel.deleteQueue(`${queue}.dlq`)))
      yield* broker.publish([outgoing(queue, "a")])
      yield* until("a refusal", () => events.some(({ _tag }) => _tag === "SettleFailed"))
    })
  )
  assert.deepStrictEqual(await drainIds(url, queue), ["a"])
})

test("a dead-letter queue that is full refuses, and the letter waits in its own queue for room", async () => {
  const queue = queueName("full")
  const dlq = `${queue}.dlq`
  const events: Array<Event.Event> = []
  await on({ url, queues: { [dlq]: { arguments: { "x-max-length": 1 } } } }, (broker) =>
    Effect.gen(function* () {
      yield* broker.publish(ids(5).map((id) => outgoing(queue, id)))
      const retry = RetryPolicy.make({ maxRetries: 0 })
      yield* consume(queue, [], { retry, onEvent: (event) => events.push(event) }, no)
      const full = () => events.some((event) => event._tag === "SettleFailed" && reasonOf(event.error) === "QueueFull")
      yield* until("a refusal", full)
      assert.isAbove((yield* broker.admin.counts(queue)).ready! + 1, 0)
      const found = new Set<string>()
      yield* until(
        () => `five letters, there were ${[...found].join(" ")}`,
        async () => {
          for (const id of await drainIds(url, dlq)) found.add(id)
          return found.size >= 5
        }
      )
      assert.strictEqual(found.size, 5)
    })
  )
})

// 406 closes the channel, and with it every consumer on it.
test("a declaration that is refused takes no consumer along, and no later declaration", async () => {
  const [queue, foreign, later] = [queueName("well"), queueName("foreign"), queueName("later")]
  const runs: Array<Run> = []
  await raw(url, (channel) => channel.assertQueue(foreign, { arguments: { "x-queue-type": "classic" } }))
  await on({ url }, (broker) =>
    Effect.gen(function* () {
      const refused = yield* Deferred.make<void>()
      yield* consume(queue, runs, {}, () => Deferred.await(refused))
      yield* broker.publish([outgoing(queue, "a")])
      yield* until("a run", () => runs.length === 1)
      const error = yield* Effect.flip(consume(foreign, [], {}))
      assert.strictEqual(reasonOf(error), "QueueMismatch")
      yield* Deferred.succeed(refused, undefined)
      yield* consume(later, runs, {})
      yield* broker.publish([outgoing(queue, "b"), outgoing(later, "c")])
      yield* until("all runs", () => runs.length === 3)
      yield* quiet(broker)
    })
  )
  assert.deepStrictEqual(runs.map(({ attempts, id }) => `${id}${attempts}`).toSorted(), ["a1", "b1", "c1"])
})
