/** What becomes something else on its way, without an error: the log says so, once, with its place. */
import { assert, describe, it } from "@effect/vitest"
import { Backoff, Codec, Consumer, Producer, QueueDefinition, RetryPolicy } from "@requeue/core"
import { CompressedCodec } from "@requeue/codecs"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import { TestClock } from "effect/testing"
import { MemoryBroker } from "../src/index.ts"

const lines: Array<string> = []
const logger = Logger.make<unknown, void>(({ message }) => void lines.push(String(message)))
const withBroker = Effect.provide(Layer.merge(MemoryBroker.layer(), Logger.layer([logger])))

describe("bodies", () => {
  const inner: Codec.Codec<any> = Codec.json // Any JSON.
  const spread = { ...Codec.json, encode: (body: unknown) => Codec.json.encode({ body }) }
  it.effect.each([
    ["JSON", inner, "body.tags"],
    ["compressed JSON", CompressedCodec.gzip(inner), "body.tags"],
    ["a codec of the program's own", spread, "body.body.tags"]
  ] as const)("%s", ([, codec, path]) =>
    Effect.gen(function* () {
      lines.length = 0
      const orders = yield* Producer.make(QueueDefinition.make("orders", { codec }))
      yield* orders.send({ tags: [] })
      assert.deepStrictEqual(lines, [])
      yield* orders.send({ tags: new Set(["a"]) })
      yield* orders.sendBatch([{ body: { tags: Number.NaN } }])
      const advice = "convert it before the send, or give the queue a codec or a schema"
      assert.deepStrictEqual(lines, [
        `${path} is a Set, whose content JSON leaves out: ${advice}; further ones are not logged`
      ])
    }).pipe(withBroker)
  )
})

describe("retryAfter", () => {
  it.effect.each([
    ["soon", 'error.retryAfter is "soon", which is neither a number of seconds nor a date; it is ignored'],
    [-5, "error.retryAfter is -5, which is neither a number of seconds nor a date; it is ignored"],
    [
      "1969-12-31T00:00:00Z",
      'error.retryAfter is "1969-12-31T00:00:00Z", which is in the past; the retry is immediate'
    ],
    ["1970-01-01T00:00:00Z", undefined],
    [0, undefined],
    [null, undefined]
  ] as const)("%s", ([retryAfter, problem]) =>
    Effect.gen(function* () {
      lines.length = 0
      const orders = yield* Producer.make<string>("orders")
      yield* orders.send("a")
      const retry = RetryPolicy.make({ maxRetries: 2, backoff: Backoff.constant(10) })
      yield* Consumer.start("orders", { retry }, () => {
        throw Object.assign(new Error("busy"), { retryAfter })
      })
      yield* TestClock.adjust("1 second")
      const told = lines.filter((line) => line.includes("retryAfter"))
      assert.deepStrictEqual(told, problem === undefined ? [] : [`${problem}; further ones are not logged`])
    }).pipe(Effect.scoped, withBroker)
  )
})
