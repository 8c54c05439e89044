/** Copies of foreign messages, compared byte by byte by a client that knows no values. */
import { Backoff, type Broker, type Delivery, RetryPolicy } from "@requeue/core"
import { Settlement } from "@requeue/core/port"
import { DeadLetters } from "@requeue/operations"
import * as Effect from "effect/Effect"
import { afterAll, assert, describe, test } from "vitest"
import * as Bits from "../bits.ts"
import * as Frames from "../../frames.ts"
import { shared } from "../../real/server.ts"
import { on, queueName, until } from "../../world.ts"
import { raw } from "./trap.ts"

const { short } = Frames
const { url } = await shared()
const other = await Frames.open(url)
afterAll(() => other.end())

const { bare, body, compare } = Bits
const full = Bits.full(url)

type Settle = (settlement: Settlement.Settlement) => Effect.Effect<unknown>

/** Publishes a message, takes its delivery, and answers a `settle` of it. */
const deliver = Effect.fnUntraced(function* (broker: Broker.Service, queue: string, content: Frames.Content) {
  const inbox: Array<Delivery.Delivery> = []
  const subscription = yield* broker.subscribe({
    queue,
    retry: RetryPolicy.make({ backoff: Backoff.constant(50) }),
    deadLetterQueues: [`${queue}.dlq`],
    onDelivery: (delivery) => inbox.push(delivery),
    onReconnect: () => assert.fail("the delivery was lost")
  })
  yield* Effect.promise(() => other.publish(queue, content))
  subscription.credit(1)
  yield* until("its delivery", () => inbox.length === 1)
  subscription.credit(0)
  const settle: Settle = (settlement) => subscription.settle([{ delivery: inbox[0]!, settlement }])
  return { delivery: inbox[0]!, settle }
})

const letterFor = (queue: string) =>
  Settlement.DeadLetter("permanent", `${queue}.dlq`, { name: "Error", message: "no" })

const ways: Readonly<
  Record<string, (queue: string, settle: Settle) => Effect.Effect<unknown, unknown, Broker.Broker>>
> = {
  "a retry at once": (_, settle) => settle(Settlement.Retry(0)),
  "a delayed retry": (_, settle) => settle(Settlement.Retry(50)),
  "a delayed retry through the levels": (_, settle) => settle(Settlement.Retry(77)),
  "a delayed release": (_, settle) => settle(Settlement.Release(50)),
  "a dead letter that is redriven": (queue, settle) =>
    Effect.gen(function* () {
      yield* settle(letterFor(queue))
      const letters = yield* DeadLetters.make(`${queue}.dlq`)
      assert.strictEqual((yield* letters.redrive()).redriven, 1)
    }),
  "a dead letter that was browsed and is redriven": (queue, settle) =>
    Effect.gen(function* () {
      yield* settle(letterFor(queue))
      const letters = yield* DeadLetters.make(`${queue}.dlq`)
      for (let times = 0; times < 5; times++) assert.lengthOf(yield* letters.list(), 1)
      assert.strictEqual((yield* letters.redrive()).redriven, 1)
    })
}

/** The first message of a queue, as soon as there is one. */
const taken = (queue: string) =>
  Effect.gen(function* () {
    let copy: Frames.Content | undefined
    while ((copy = yield* Effect.promise(() => other.get(queue))) === undefined) yield* Effect.sleep(10)
    return copy
  }).pipe(Effect.timeout(10_000))

describe.each(["quorum", "classic"] as const)("on a %s queue", (queueType) => {
  describe.each([
    ["all types and properties", full],
    ["one short header", bare],
    ["no properties", {}]
  ] as const)("a foreign message with %s is the same", (_, original) => {
    test.each(Object.keys(ways))("after %s", async (way) => {
      const queue = queueName("bits")
      await on({ url, queueType }, (broker) =>
        Effect.gen(function* () {
          const { settle } = yield* deliver(broker, queue, { properties: Frames.properties(original), body })
          yield* ways[way]!(queue, settle)
          const isCopy = way !== "a retry at once" || queueType === "classic"
          compare(yield* taken(queue), original, isCopy)
        })
      )
    })
  })
})

test("a handler sees text, and the content type of the header", async () => {
  const queue = queueName("shown")
  await on({ url }, (broker) =>
    Effect.gen(function* () {
      const { delivery } = yield* deliver(broker, queue, { properties: Frames.properties(full), body })
      assert.deepInclude(delivery.headers, {
        "double 1.0": "1",
        void: "null",
        "text that is none": "\ufffd\ufffdA\ufffd",
        "content-type": "header/type",
        "int64 that fits into 8 bits": "5"
      })
    })
  )
})

test("two messages whose long ids differ at the end alone stay two", async () => {
  const queue = queueName("ids")
  const ids: Array<string> = []
  await on({ url }, (broker) =>
    Effect.gen(function* () {
      yield* Effect.promise(() => raw(url, (channel) => channel.assertQueue(queue)))
      for (const end of ["1", "2"]) {
        const properties = Frames.properties({ messageId: short("i".repeat(200) + end) })
        const [one] = [yield* deliver(broker, queueName("id"), { properties, body })]
        ids.push(one.delivery.metadata.id)
      }
    })
  )
  assert.strictEqual(new Set(ids).size, 2)
  for (const id of ids) assert.match(id, /^i{183}~[0-9a-f]{16}$/)
})
