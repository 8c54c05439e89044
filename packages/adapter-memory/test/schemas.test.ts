/** Bodies with a schema, from the sender to the handler, on both faces. What does not fit is never handled, and never retried. */
import { assert, describe, it } from "@effect/vitest"
import { Consumer, EncodeError, InvalidBody, Producer, QueueDefinition } from "@requeue/core"
import { queue } from "@requeue/core/promise"
import * as Effect from "effect/Effect"
import type { StandardSchemaV1 } from "effect/StandardSchema"
import { type } from "arktype"
import * as v from "valibot"
import * as z from "zod"
import * as Testing from "../src/Testing.ts"

const price = { wrong: { price: "x" }, right: { price: 2 } }

const schemas: Readonly<Record<string, StandardSchemaV1<any>>> = {
  zod: z.object({ price: z.number() }),
  "zod, asynchronous": z.object({ price: z.number().refine(async () => true) }),
  valibot: v.object({ price: v.number() }),
  "valibot, asynchronous": v.objectAsync({ price: v.number() }),
  arktype: type({ price: "number" })
}

const failure = async (run: () => Promise<unknown>): Promise<unknown> =>
  run().then(
    () => assert.fail("it was sent"),
    (error: unknown) => error
  )

describe.each(Object.entries(schemas))("of %s", (_, schema) => {
  const orders = queue("orders", { schema })

  it("a body that does not fit is not sent, and its error names call, queue, place and remedy", async () => {
    await using broker = await Testing.open()
    for (const send of [
      () => broker.requeue.send(orders, price.wrong),
      () => broker.requeue.sendBatch(orders, [{ body: price.right }, { body: price.wrong }])
    ]) {
      const error = await failure(send)
      assert.instanceOf(error, EncodeError.EncodeError)
      assert.match(error.message, /^send to queue orders: (entries\[1\]\.)?body: InvalidBody: price\b.*number/)
      assert.match(error.message, /Send a body that fits the queue's schema$/)
      assert.instanceOf(error.cause, InvalidBody.InvalidBody)
    }
    assert.deepStrictEqual(await broker.sent(orders), [])
  })

  it("a message that does not fit is a dead letter at once, with the place, and no handler sees it", async () => {
    await using broker = await Testing.open()
    const seen: Array<unknown> = []
    await broker.requeue.consume(orders, { retry: { maxRetries: 5 } }, ({ body }) => seen.push(body))
    // A producer without the schema.
    await broker.requeue.send("orders", price.wrong)
    await broker.requeue.send(orders, price.right)
    await broker.waitUntilIdle()
    assert.deepStrictEqual(seen, [price.right])
    const [letter, ...others] = await broker.deadLettersOf("orders")
    assert.deepStrictEqual(others, [])
    assert.deepInclude(letter, { reason: "undecodable", attempts: 1, body: price.wrong, at: 0 })
    assert.strictEqual(letter?.error.name, "InvalidBody")
    assert.match(letter?.error.message ?? "", /^price\b/)
  })

  it.effect("so it is with Effect", () =>
    Effect.gen(function* () {
      const broker = yield* Testing.TestBroker
      const definition = QueueDefinition.make("orders", { schema })
      const seen: Array<unknown> = []
      yield* Consumer.start(definition, {}, ({ body }) => void seen.push(body))
      const producer = yield* Producer.make(definition)
      const refused = yield* Effect.flip(producer.send(price.wrong))
      assert.strictEqual(refused._tag, "EncodeError")
      yield* (yield* Producer.make("orders")).send(price.wrong)
      yield* producer.send(price.right)
      yield* broker.waitUntilIdle()
      assert.deepStrictEqual(seen, [price.right])
      assert.deepStrictEqual(
        (yield* broker.deadLettersOf("orders")).map(({ error, reason }) => [reason, error.name]),
        [["undecodable", "InvalidBody"]]
      )
    }).pipe(Effect.provide(Testing.layer()), Effect.scoped)
  )
})

describe("a schema that needs no time", () => {
  it("keeps the order of sends, among queues without one", async () => {
    await using broker = await Testing.open()
    const numbers = queue("numbers", { schema: z.number() })
    await Promise.all(
      Array.from({ length: 50 }, (_, n) => broker.requeue.send<number>(n % 2 === 0 ? numbers : "numbers", n))
    )
    const sent = await broker.sent(numbers)
    assert.deepStrictEqual(
      sent.map(({ body }) => body),
      Array.from({ length: 50 }, (_, n) => n)
    )
  })
})

describe("a schema that never answers", () => {
  const silent = queue("orders", {
    schema: { "~standard": { version: 1, vendor: "test", validate: () => new Promise<never>(() => {}) } }
  })

  it("is waited for as long as a send may take", async () => {
    await using broker = await Testing.open()
    const refused = failure(() => broker.requeue.send(silent, 1))
    await broker.advance("30 seconds")
    const error = await refused
    assert.instanceOf(error, EncodeError.EncodeError)
    assert.include(error.message, "nothing was sent")
    assert.deepStrictEqual(await broker.sent("orders"), [])
  })

  it("costs its message an attempt, and no other one anything", async () => {
    await using broker = await Testing.open()
    const seen: Array<unknown> = []
    await broker.requeue.consume(silent, { retry: { maxRetries: 1 } }, () => assert.fail("it was handled"))
    await broker.requeue.consume("others", {}, ({ body }) => seen.push(body))
    await broker.requeue.send("orders", 1)
    await broker.requeue.send("others", 2)
    await broker.waitUntilIdle()
    assert.deepStrictEqual(seen, [2])
    const [letter] = await broker.deadLettersOf("orders")
    assert.deepInclude(letter, { reason: "retries-exhausted", attempts: 2 })
  })
})
