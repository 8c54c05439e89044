/** Copies that the server or the driver refuses, beside others in the same call. */
import { Backoff, type Broker, type Delivery, type Event, RetryPolicy } from "@requeue/core"
import { Settlement } from "@requeue/core/port"
import type { ConfirmChannel, Options } from "amqplib"
import * as Effect from "effect/Effect"
import { assert, test } from "vitest"
import { shared } from "../../real/server.ts"
import { drainIds, ids, on, publishAll, queueName, until } from "../../world.ts"
import { consume, no, raw, type Run } from "./trap.ts"

const { broker: server, url } = await shared()
const [node] = server.nodes

const later = 3_600_000

/** Publishes `a`, `b` and `hostile` with these properties, and answers a `settle` of their deliveries by their ids. */
const deliver = Effect.fnUntraced(function* (broker: Broker.Service, queue: string, properties: Options.Publish = {}) {
  const inbox = new Map<string, Delivery.Delivery>()
  const subscription = yield* broker.subscribe({
    queue,
    retry: RetryPolicy.make({ backoff: Backoff.constant(later) }),
    deadLetterQueues: [`${queue}.dlq`],
    onDelivery: (delivery) => inbox.set(delivery.metadata.id, delivery),
    onReconnect: () => assert.fail("the deliveries were lost")
  })
  subscription.credit(10)
  const send = (channel: ConfirmChannel, messageId: string, more: Options.Publish) =>
    channel.sendToQueue(queue, Buffer.from("1"), { persistent: true, messageId, ...more })
  yield* Effect.promise(() =>
    raw(url, async (channel) => {
      send(channel, "a", {})
      send(channel, "hostile", properties)
      send(channel, "b", {})
    })
  )
  yield* until("three deliveries", () => inbox.size === 3)
  return (settlements: Readonly<Record<string, Settlement.Settlement>>) => {
    const requests = Object.entries(settlements).map(([id, settlement]) => ({ delivery: inbox.get(id)!, settlement }))
    return Effect.map(subscription.settle(requests), (failures) =>
      failures.map(({ delivery, error: { reason }, fate }) => [delivery.metadata.id, reason, fate])
    )
  }
})

const letterFor = (queue: string) =>
  Settlement.DeadLetter("permanent", `${queue}.dlq`, { name: "Error", message: "no" })

/** The driver writes headers of 64 KiB at most, ours included. */
const long = { long: "x".repeat(65_500) }

test("a dead letter with headers of 64 KiB is refused; its neighbours are not, and its original is held", async () => {
  const queue = queueName("unwritten")
  await on({ url }, (broker) =>
    Effect.gen(function* () {
      const settle = yield* deliver(broker, queue, { headers: long })
      const letter = letterFor(queue)
      const refused = [["hostile", "BodyTooLarge", "rejected"]]
      assert.deepStrictEqual(yield* settle({ a: letter, hostile: letter, b: letter }), refused)
      assert.deepStrictEqual(yield* settle({ hostile: letter }), refused)
      assert.deepStrictEqual(yield* settle({ hostile: Settlement.Ack }), [])
      assert.deepStrictEqual(yield* settle({ hostile: Settlement.Ack }), [["hostile", "LeaseLost", "lost"]])
    })
  )
  assert.deepStrictEqual((await drainIds(url, `${queue}.dlq`)).toSorted(), ["a", "b"])
  assert.deepStrictEqual(await drainIds(url, queue), [])
})

test("a delay whose exchange was removed is made again, and copies beside it are not lost with its channel", async () => {
  const [queue, prefix] = [queueName("unmade"), queueName("p").slice(0, 20)]
  await on({ url, prefix, topology: "ladder" }, (broker) =>
    Effect.gen(function* () {
      const settle = yield* deliver(broker, queue)
      assert.deepStrictEqual(yield* settle({ a: Settlement.Retry(later) }), [])
      const rung = `${prefix}.v1.q.delay.${later}`
      yield* Effect.promise(() => raw(url, (channel) => channel.deleteExchange(rung)))
      const failures = yield* settle({ b: letterFor(queue), hostile: Settlement.Retry(later) })
      assert.deepStrictEqual(failures, [])
      assert.deepStrictEqual((yield* Effect.promise(() => drainIds(url, rung))).toSorted(), ["a", "hostile"])
    })
  )
  assert.include(await drainIds(url, `${queue}.dlq`), "b")
})

test.runIf(node)("a dead letter that may not be written is refused, and a delay beside it is kept", async () => {
  const [queue, prefix] = [queueName("forbidden"), queueName("p").slice(0, 20)]
  await node!.ctl("add_user", queue, "s3cret")
  await node!.ctl("set_permissions", queue, ".*", "^(?!amq.default$).*", ".*")
  await on({ url, username: queue, password: "s3cret", prefix }, (broker) =>
    Effect.gen(function* () {
      const settle = yield* deliver(broker, queue)
      const [letter, retry] = [letterFor(queue), Settlement.Retry(later)]
      assert.deepStrictEqual(yield* settle({ a: retry, hostile: letter, b: retry }), [
        ["hostile", "AccessRefused", "rejected"]
      ])
      assert.deepStrictEqual(yield* settle({ hostile: Settlement.Release() }), [])
    })
  )
  assert.deepStrictEqual(await drainIds(url, queue), ["hostile"])
})

test("a message whose dead letter cannot be written is kept, is not run again, and slows nobody", async () => {
  const queue = queueName("poison")
  const runs: Array<Run> = []
  const events: Array<Event.Event> = []
  await on({ url }, (broker) =>
    Effect.gen(function* () {
      const retry = RetryPolicy.make({ maxRetries: 0 })
      const onEvent = (event: Event.Event) => void events.push(event)
      yield* consume(queue, runs, { retry, onEvent }, ({ id }) => (id === "poison" ? no() : undefined))
      yield* Effect.promise(() =>
        raw(url, async (channel) => {
          channel.sendToQueue(queue, Buffer.from('"x"'), { persistent: true, messageId: "poison", headers: long })
        })
      )
      yield* until("its quarantine", () => events.some(({ _tag }) => _tag === "Quarantined"))
      yield* publishAll(broker, queue, ids(50))
      yield* until("the others", () => events.filter(({ _tag }) => _tag === "Succeeded").length === 50)
    })
  )
  assert.strictEqual(runs.filter(({ id }) => id === "poison").length, 1)
  assert.deepStrictEqual(await drainIds(url, queue), ["poison"])
})
