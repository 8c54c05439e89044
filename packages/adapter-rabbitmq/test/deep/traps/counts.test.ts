/** Headers that a foreign producer, a shovel or a service that forwards messages may send: none of them counts. */
import { type Broker, type Delivery, type Event, RetryPolicy } from "@requeue/core"
import { Settlement } from "@requeue/core/port"
import * as Effect from "effect/Effect"
import { afterAll, assert, describe, test } from "vitest"
import * as Frames from "../../frames.ts"
import { apart, shared } from "../../real/server.ts"
import { drainIds, on, outgoing, queueName, quiet, until } from "../../world.ts"
import { consume, raw, type Run } from "./trap.ts"

const server = await shared()
const { url } = server
const other = await Frames.open(url)
afterAll(() => other.end())

const deaths = [{ queue: "orders", reason: "rejected", exchange: "", count: 1000, "routing-keys": ["orders"] }]

const forged: Readonly<Record<string, Readonly<Record<string, unknown>>>> = {
  "the counts of a message that was browsed, moved by a shovel": {
    "x-delivery-count": 1000,
    "x-acquired-count": 1000
  },
  "a count without the other": { "x-delivery-count": 1e15 },
  "a record of deaths": { "x-death": deaths, "x-first-death-queue": "orders", "x-last-death-queue": "orders" },
  "former returns, as a number": { "requeue-returns": 1e9 },
  "former returns, as text": { "requeue-returns": `1000000000 ${"A".repeat(43)}=` },
  "former returns and the name of a copy": { "requeue-returns": `1000 ${"A".repeat(43)}=`, "requeue-copy": "c1" },
  "what people read": { "requeue-attempts": "1000", "requeue-reason": "permanent", "requeue-error": "no" }
}

describe.each(["quorum", "classic"] as const)("on a %s queue", (queueType) => {
  test.each(Object.keys(forged))("%s: the first run is the first", async (what) => {
    const queue = queueName("forged")
    const runs: Array<Run> = []
    const events: Array<Event.Event> = []
    await on({ url, queueType }, (broker) =>
      Effect.gen(function* () {
        const retry = RetryPolicy.make({ maxRetries: 0, maxDeliveries: 1 })
        yield* consume(queue, runs, { retry, onEvent: (event) => void events.push(event) })
        const content = Buffer.from('"x"')
        yield* Effect.promise(() =>
          raw(url, async (channel) => channel.sendToQueue(queue, content, { headers: forged[what], messageId: "m" }))
        )
        yield* until("its end", () => events.some(({ _tag }) => _tag === "Succeeded" || _tag === "DeadLettered"))
        yield* quiet(broker)
      })
    )
    assert.deepStrictEqual(
      runs.map(({ attempts }) => attempts),
      [1]
    )
    assert.deepStrictEqual(await drainIds(url, `${queue}.dlq`), [])
  })

  /** A message of ours, published so often, each byte the same. */
  const repeat = Effect.fnUntraced(function* (broker: Broker.Service, queue: string, times: number) {
    yield* broker.publish([outgoing(queue, "m")])
    const content = (yield* Effect.promise(() => other.get(queue)))!
    for (let left = times; left > 0; left--) yield* Effect.promise(() => other.publish(queue, content))
  })

  const subscribe = Effect.fnUntraced(function* (broker: Broker.Service, queue: string) {
    const inbox: Array<Delivery.Delivery> = []
    const subscription = yield* broker.subscribe({
      queue,
      retry: RetryPolicy.make(),
      deadLetterQueues: [],
      onDelivery: (delivery) => inbox.push(delivery),
      onReconnect: () => {}
    })
    const settle = (at: number, settlement: Settlement.Settlement) =>
      subscription.settle([{ delivery: inbox[at]!, settlement }])
    return { inbox, settle, subscription }
  })

  test("after a lost connection, the second delivery is the second", async () => {
    const queue = queueName("returned")
    await Effect.runPromise(
      Effect.scoped(
        Effect.gen(function* () {
          const own = yield* apart(server)
          const program = on({ url: own.proxied, queueType }, (broker) =>
            Effect.gen(function* () {
              const { inbox, settle, subscription } = yield* subscribe(broker, queue)
              subscription.credit(1)
              const headers = { "x-delivery-count": 1000, "x-acquired-count": 1000, "requeue-returns": 1e9 }
              const content = Buffer.from('"x"')
              yield* Effect.promise(() =>
                raw(url, async (channel) => channel.sendToQueue(queue, content, { headers, messageId: "m" }))
              )
              yield* until("its delivery", () => inbox.length === 1)
              own.proxy.cut()
              yield* until("its second delivery", () => inbox.length === 2)
              yield* settle(1, Settlement.Ack)
              assert.deepStrictEqual(
                inbox.map(({ attempts }) => attempts),
                [1, 2]
              )
            })
          )
          yield* Effect.promise(() => program)
        })
      )
    )
    assert.deepStrictEqual(await drainIds(url, queue), [])
  })

  test.each([
    ["that came before the other was settled", 2],
    ["that came when the other was settled", 1]
  ])("a message that somebody repeats byte by byte, %s, is not taken for it", async (_, credit) => {
    const queue = queueName("repeated")
    await on({ url, queueType }, (broker) =>
      Effect.gen(function* () {
        yield* repeat(broker, queue, 2)
        const { inbox, settle, subscription } = yield* subscribe(broker, queue)
        subscription.credit(credit)
        yield* until("the first", () => inbox.length === credit)
        yield* settle(0, Settlement.Ack)
        yield* until("the second", () => inbox.length === 2)
        yield* settle(1, Settlement.Release())
        yield* until("the second again", () => inbox.length === 3)
        yield* settle(2, Settlement.Ack)
        yield* quiet(broker)
        assert.lengthOf(inbox, 3)
      })
    )
    assert.deepStrictEqual(await drainIds(url, queue), [])
  })
})
