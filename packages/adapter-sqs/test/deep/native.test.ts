/** Attributes with their types: as a program asks for them, as a handler reads them, and as they go on in copies. */
import { Consumer, Producer, RetryPolicy } from "@requeue/core"
import { DeadLetters } from "@requeue/operations"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import { assert, describe, test } from "vitest"
import { SqsNative } from "../../src/index.ts"
import { strict } from "./strict.ts"
import { drain, no, on, queueName, until, urlOf } from "../real/world.ts"

const { behind, url } = await strict()

const attributes = {
  total: { type: "Number.euro", value: "9.50" },
  raw: { type: "Binary", value: new Uint8Array([0, 255, 7]) },
  kind: { type: "String.enum", value: "paid" }
} satisfies Record<string, SqsNative.Attribute>

const native = SqsNative.make({ attributes })

const retry = RetryPolicy.make({ maxRetries: 1 })

/** The attributes that were asked for, among all that a message tells. */
const known = (told: SqsNative.SqsNative | undefined) => {
  const { kind, raw, total } = told?.attributes ?? {}
  return { total, raw, kind }
}

test("attributes that are no text keep their types at each attempt, by copies as well, in the dead letter, and redriven", async () => {
  const queue = queueName("typed")
  const told: Array<SqsNative.SqsNative | undefined> = []
  const headers: Array<unknown> = []
  // Each retry is a copy.
  await on({ url, inFlightLimit: 0 }, () =>
    Effect.gen(function* () {
      yield* Consumer.start(queue, { retry, retryDelay: 1000 }, (message) => {
        told.push(SqsNative.of(message))
        headers.push([message.headers["total"], message.headers["raw"], message.headers["x-tenant"]])
        return no
      })
      const producer = yield* Producer.make<string>(queue)
      yield* producer.send("x", { native, headers: { total: "beaten", "x-tenant": "a" } })
      yield* until("two runs", () => told.length === 2)
      const letters = yield* DeadLetters.make(`${queue}.dlq`)
      yield* until("the dead letter", async () => {
        const [letter] = await Effect.runPromise(letters.list())
        if (letter !== undefined) told.push(SqsNative.of(letter))
        return letter !== undefined
      })
    })
  )
  await on({ url }, () =>
    Effect.gen(function* () {
      const letters = yield* DeadLetters.make(`${queue}.dlq`)
      yield* letters.redrive()
      yield* Consumer.start(queue, {}, (message) => void told.push(SqsNative.of(message)))
      yield* until("the redriven", () => told.length === 4)
    })
  )
  assert.deepStrictEqual(told.map(known), [attributes, attributes, attributes, attributes])
  assert.deepStrictEqual(headers, [
    ["9.50", "AP8H", "a"],
    ["9.50", "AP8H", "a"]
  ])
  assert.isTrue(told.every((one) => Number(one?.system["SentTimestamp"]) > 0 && one?.messageId !== ""))
})

test("a foreign producer's are told with their types", async () => {
  const queue = queueName("foreign")
  const told: Array<SqsNative.SqsNative | undefined> = []
  await on({ url }, () =>
    Effect.gen(function* () {
      yield* Consumer.start(queue, {}, (message) => void told.push(SqsNative.of(message)))
      const QueueUrl = yield* Effect.promise(() => urlOf(behind, queue))
      const MessageAttributes = { total: { DataType: "Number", StringValue: "5" } }
      yield* Effect.promise(() => behind.sendMessage({ QueueUrl, MessageBody: "1", MessageAttributes }))
      yield* until("its run", () => told.length === 1)
    })
  )
  assert.deepStrictEqual(told[0]?.attributes, { total: { type: "Number", value: "5" } })
  assert.isTrue(Object.isFrozen(told[0]?.attributes["total"]))
})

test("bytes that their sender changes later go as they were", async () => {
  const queue = queueName("changed")
  const value = new Uint8Array([1, 2])
  const native = SqsNative.make({ attributes: { raw: { type: "Binary", value } } })
  await on({ url }, () =>
    Effect.gen(function* () {
      const producer = yield* Producer.make<string>(queue)
      value[0] = 9
      const sending = yield* Effect.forkChild(producer.send("x", { native }), { startImmediately: true })
      value[1] = 9
      yield* Fiber.join(sending)
    })
  )
  const [message] = await drain(behind, queue)
  assert.deepStrictEqual([...(message?.MessageAttributes?.["raw"]?.BinaryValue ?? [])], [1, 2])
})

test("a message with 7 of them and 20 headers keeps all, in the dead letter as well", async () => {
  const queue = queueName("many")
  const seen: Array<[SqsNative.SqsNative | undefined, Readonly<Record<string, string>>]> = []
  const numbers = Object.fromEntries("abcdefg".split("").map((name) => [name, { type: "Number", value: "1" }]))
  const headers = Object.fromEntries(Array.from({ length: 20 }, (_, at) => [`h${at}`, String(at)]))
  await on({ url }, () =>
    Effect.gen(function* () {
      yield* Consumer.start(queue, { retry: RetryPolicy.make({ maxRetries: 0 }) }, (message) => {
        seen.push([SqsNative.of(message), message.headers])
        return no
      })
      const producer = yield* Producer.make<string>(queue)
      yield* producer.send("x", { native: SqsNative.make({ attributes: numbers }), headers })
      const letters = yield* DeadLetters.make(`${queue}.dlq`)
      yield* until("the dead letter", async () => {
        const [letter] = await Effect.runPromise(letters.list())
        if (letter !== undefined) seen.push([SqsNative.of(letter), letter.headers])
        return letter !== undefined
      })
    })
  )
  for (const [told, text] of seen) {
    assert.deepInclude(told?.attributes, numbers)
    assert.deepInclude(text, headers)
  }
})

describe("attributes that SQS does not take", () => {
  test.each<[string, string, unknown]>([
    ["of no type", "attributes.a must have a type", { a: { type: "Text", value: "x" } }],
    ["no number", "attributes.a must have a value that is a number", { a: { type: "Number", value: "many" } }],
    ["no bytes", "attributes.a must have a value of bytes", { a: { type: "Binary", value: "x" } }],
    ["empty", "attributes.a must have a value of text", { a: { type: "String", value: "" } }],
    ["no characters of SQS", "attributes.a must have a value of text", { a: { type: "String", value: "\u0000" } }],
    ["of a reserved name", "attributes.aws.a has a name", { "aws.a": { type: "String", value: "x" } }],
    ["of a name of Requeue", "attributes.requeue has a name", { requeue: { type: "String", value: "{}" } }],
    ["plain text", "attributes.a must have a type", { a: "x" }],
    ["no object", "attributes must be an object of attributes", "x"],
    [
      "unreadable",
      "options cannot be read: no",
      {
        get a() {
          throw new Error("no")
        }
      }
    ],
    [
      "eight",
      "attributes must be at most 7, got 8",
      Object.fromEntries("abcdefgh".split("").map((name) => [name, { type: "Number", value: "1" }]))
    ]
  ])("%s", async (_, message, wrong) => {
    const options = { attributes: wrong } as SqsNative.Options // on purpose
    assert.throws(() => SqsNative.make(options), RangeError, `SqsNative.make: ${message}`)
    const error = await on({ url }, () =>
      Effect.flatMap(Producer.make(queueName("wrong")), (producer) =>
        Effect.flip(producer.send("x", { native: { sqs: options } }))
      )
    )
    assert.deepInclude(error, { reason: "Unsupported" })
    assert.include(String(error), `native.sqs: ${message}`)
  })
})
