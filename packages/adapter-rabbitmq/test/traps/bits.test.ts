/** Copies of foreign messages, compared byte by byte by a client that knows no values. */
import { Backoff, type Broker, DeadLetters, type Delivery, RetryPolicy, Settlement } from "@requeue/core"
import * as Effect from "effect/Effect"
import { afterAll, assert, describe, test } from "vitest"
import * as Frames from "../frames.ts"
import { shared } from "../server.ts"
import { on, queueName, until } from "../world.ts"
import { raw } from "./trap.ts"

const { entry, join, long, short, u16, u32, u64, u8, value } = Frames
const { url } = await shared()
const other = await Frames.open(url)
afterAll(() => other.end())

const bytes = (hex: string): Buffer => Buffer.from(hex, "hex")

const headers: ReadonlyArray<readonly [name: string, value: Buffer]> = [
  ["true", value("t", u8(1))],
  ["false", value("t", u8(0))],
  ["int8", value("b", u8(0x85))],
  ["uint8", value("B", u8(200))],
  ["int16 that fits into 8 bits", value("s", u16(5))],
  ["uint16", value("u", u16(50_000))],
  ["int32 that fits into 8 bits", value("I", u32(5))],
  ["uint32", value("i", u32(4_000_000_000))],
  ["int64 that fits into 8 bits", value("l", u64(5n))],
  ["int64 beyond 2^53", value("l", u64(9_007_199_254_740_993n))],
  ["the least int64", value("l", u64(-(2n ** 63n)))],
  ["float 1.0", value("f", bytes("3f800000"))],
  ["float 0.1", value("f", bytes("3dcccccd"))],
  ["double 1.0", value("d", bytes("3ff0000000000000"))],
  ["double -0.0", value("d", bytes("8000000000000000"))],
  ["decimal", value("D", u8(2), u32(314))],
  ["decimal below 0", value("D", u8(2), u32(0xffff_fff0))],
  ["timestamp", value("T", u64(1_700_000_000n))],
  ["the last timestamp", value("T", u64(2n ** 64n - 1n))],
  ["byte array", value("x", long(bytes("00ff80")))],
  ["text", value("S", long("grüße"))],
  ["text that is none", value("S", long(bytes("fffe41c3")))],
  ["void", value("V")],
  [
    "table",
    value("F", long(join(entry("!", value("S", long("net"))), entry("n", value("l", u64(9_007_199_254_740_993n))))))
  ],
  [
    "array",
    value("A", long(join(value("l", u64(1n)), value("d", bytes("3ff0000000000000")), value("A", long(value("V"))))))
  ],
  ["empty table", value("F", long(""))],
  ["empty array", value("A", long(""))],
  ["content-type", value("S", long("header/type"))],
  ["__proto__", value("S", long("a name of JavaScript"))],
  ["!", value("S", long("double"))],
  ["", value("S", long("no name"))]
]

const { username } = new URL(url)

/** Every property, and what no copy keeps. */
const full: Frames.Parts = {
  contentType: short("property/type"),
  contentEncoding: short("gzip"),
  headers: join(...headers.map(([name, tagged]) => entry(name, tagged))),
  deliveryMode: u8(1),
  priority: u8(3),
  correlationId: short("correlation ü"),
  replyTo: short("amq.rabbitmq.reply-to.x"),
  expiration: short("3600000"),
  messageId: short(`${"i".repeat(254)}1`),
  timestamp: u64(1_700_000_001n),
  type: short("order.created"),
  userId: short(decodeURIComponent(username || "guest")),
  appId: short("shop")
}

/** Nothing but one short header, without which a table could be too short for a trick. */
const bare: Frames.Parts = { headers: entry("", value("V")) }

const body = Buffer.from(Array.from({ length: 300 }, (_, at) => at % 256))

const ours = /^(requeue|x-|CC$|BCC$)/
/** Servers from 4.0 on put headers in an order of their own. */
const tableOf = ({ headers = Buffer.alloc(0) }: Frames.Parts) =>
  [...Frames.entries(headers)]
    .filter(([name]) => !ours.test(name))
    .map(([name, one]) => `${name}: ${one.toString("hex")}`)
    .toSorted()

/** Insists that a message has what it had at first; a copy has neither expiration nor user id. */
const compare = (copy: Frames.Content, original: Frames.Parts, isCopy: boolean): void => {
  const { headers: _, ...properties } = Frames.parts(copy.properties)
  const { expiration, headers: __, userId, ...kept } = original
  const expected = isCopy ? kept : { ...kept, ...(expiration && { expiration }), ...(userId && { userId }) }
  assert.deepStrictEqual(tableOf(Frames.parts(copy.properties)), tableOf(original))
  // A copy is stored unless its producer has asked for less.
  const { deliveryMode = u8(2), ...others } = properties
  assert.deepStrictEqual({ ...others, deliveryMode }, { deliveryMode: u8(2), ...expected })
  assert.isTrue(copy.body.equals(body))
}

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
  "a dead letter that was looked at and is redriven": (queue, settle) =>
    Effect.gen(function* () {
      yield* settle(letterFor(queue))
      const letters = yield* DeadLetters.make(`${queue}.dlq`)
      for (let looks = 0; looks < 5; looks++) assert.lengthOf(yield* letters.list(), 1)
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
