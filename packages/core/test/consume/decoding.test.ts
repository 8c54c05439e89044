/** A codec may take its time: the message is ours all the while. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { TestClock } from "effect/testing"
import type { Codec } from "../../src/message/Codec.ts"
import * as Consumer from "../../src/consume/Consumer.ts"
import * as RetryPolicy from "../../src/policy/RetryPolicy.ts"
import * as QueueDefinition from "../../src/message/QueueDefinition.ts"
import * as Scripted from "../scripted.ts"

const slow = () => {
  const waiting: Array<() => void> = []
  const codec: Codec<any> = {
    contentType: undefined,
    encode: () => new Uint8Array(),
    decode: () => new Promise((resolve) => waiting.push(() => resolve("decoded")))
  }
  const decodeAll = Effect.promise(() => {
    for (const resume of waiting.splice(0)) resume()
    return new Promise((resolve) => setImmediate(resolve))
  })
  return { queue: QueueDefinition.make("q", { codec }), decodeAll }
}

describe("while a body is decoded", () => {
  it.effect("its lease is extended, and it is no message in progress", () => {
    const broker = Scripted.make({ lease: { duration: 3000, max: Number.POSITIVE_INFINITY } })
    return Effect.gen(function* () {
      const { decodeAll, queue } = slow()
      const consumer = yield* Consumer.start(queue, {}, () => {})
      broker.deliver("a")
      yield* TestClock.adjust(2000)
      assert.deepStrictEqual(broker.take(), ["credit 2", "extend a", "extend a"])
      assert.strictEqual(consumer.stats().inProgress, 0)
      yield* decodeAll
      assert.deepStrictEqual(broker.take(), ["a:Ack"])
    }).pipe(Effect.scoped, Effect.provide(broker.layer))
  })

  it.effect("a lost connection takes it away: its redelivery is the one that runs", () => {
    const broker = Scripted.make()
    return Effect.gen(function* () {
      const { decodeAll, queue } = slow()
      let runs = 0
      const consumer = yield* Consumer.start(queue, {}, () => void runs++)
      broker.deliver("a")
      broker.reconnect()
      broker.deliver("a", { attempts: 2 })
      yield* decodeAll
      assert.strictEqual(runs, 1)
      assert.deepStrictEqual(broker.take(), ["credit 2", "credit 2", "a:Ack"])
      assert.isTrue((yield* consumer.drain(0)).complete)
    }).pipe(Effect.scoped, Effect.provide(broker.layer))
  })

  it.effect("redeliveries that are too many by then are given up", () => {
    const broker = Scripted.make({ lease: { duration: 3000, max: Number.POSITIVE_INFINITY }, connectionBound: false })
    return Effect.gen(function* () {
      const { decodeAll, queue } = slow()
      const retry = RetryPolicy.make({ maxRetries: 0, maxDeliveries: 1 })
      yield* Consumer.start(queue, { retry }, () => assert.fail("a handler ran"))
      broker.deliver("a")
      broker.deliver("a", { attempts: 3 })
      yield* decodeAll
      assert.deepStrictEqual(broker.take(), ["credit 2", "a:DeadLetter"])
    }).pipe(Effect.scoped, Effect.provide(broker.layer))
  })

  it.effect("a drain waits, and then gives it back", () => {
    const broker = Scripted.make()
    return Effect.gen(function* () {
      const { decodeAll, queue } = slow()
      const consumer = yield* Consumer.start(queue, {}, () => assert.fail("a handler ran"))
      broker.deliver("a")
      const draining = yield* Effect.forkChild(consumer.drain(), { startImmediately: true })
      yield* TestClock.adjust(100)
      assert.isUndefined(draining.pollUnsafe())
      yield* decodeAll
      assert.deepStrictEqual(broker.take(), ["credit 2", "credit 0", "a:Release"])
      assert.isDefined(draining.pollUnsafe())
    }).pipe(Effect.scoped, Effect.provide(broker.layer))
  })
})
