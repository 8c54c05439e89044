/** A codec may take its time: the message is ours all the while. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { TestClock } from "effect/testing"
import type { Event } from "../../src/observe/Event.ts"
import type { Codec } from "../../src/message/Codec.ts"
import * as Consumer from "../../src/consume/Consumer.ts"
import * as RetryPolicy from "../../src/policy/RetryPolicy.ts"
import * as QueueDefinition from "../../src/message/QueueDefinition.ts"
import * as Promises from "../promises.ts"
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
      const { buffered, inProgress } = consumer.stats()
      yield* decodeAll
      assert.deepStrictEqual([buffered, inProgress], [1, 0])
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

  it.effect("a drain gives it back at once, and nothing comes of its codec's late answer", () => {
    const broker = Scripted.make()
    return Effect.gen(function* () {
      const { decodeAll, queue } = slow()
      const told: Array<string> = []
      const onEvent = ({ _tag }: Event) => void told.push(_tag)
      const consumer = yield* Consumer.start(queue, { onEvent }, () => assert.fail("a handler ran"))
      broker.deliver("a")
      const draining = yield* Effect.forkChild(consumer.drain(), { startImmediately: true })
      yield* TestClock.adjust(0)
      const [ended, { buffered }] = [draining.pollUnsafe(), consumer.stats()]
      yield* decodeAll
      assert.isDefined(ended)
      assert.strictEqual(buffered, 0)
      yield* TestClock.adjust("1 minute")
      assert.deepStrictEqual(broker.take(), ["credit 2", "credit 0", "a:Release"])
      assert.deepStrictEqual(told, ["Received", "Released"])
    }).pipe(Effect.scoped, Effect.provide(broker.layer))
  })

  it.effect("a drain gives a lost one back by no settlement", () => {
    const broker = Scripted.make()
    return Effect.gen(function* () {
      const { decodeAll, queue } = slow()
      const consumer = yield* Consumer.start(queue, {}, () => assert.fail("a handler ran"))
      broker.deliver("a")
      broker.reconnect()
      broker.deliver("b")
      const draining = yield* Effect.forkChild(consumer.drain(), { startImmediately: true })
      yield* TestClock.adjust(0)
      const ended = draining.pollUnsafe()
      yield* decodeAll
      assert.isDefined(ended)
      assert.deepStrictEqual(broker.take(), ["credit 2", "credit 2", "credit 0", "b:Release"])
    }).pipe(Effect.scoped, Effect.provide(broker.layer))
  })
})

describe("a body that a promise brings", () => {
  const settled = Effect.promise(() => new Promise((resolve) => setImmediate(resolve)))

  const consuming =
    (outcome: () => Promise<unknown>, wrap: (codec: Codec<any>) => Codec<any>) => (make: Promises.Make) => {
      const broker = Scripted.make()
      return Effect.gen(function* () {
        // What it answers is a promise that the types do not know.
        const decode: () => any = () => make(outcome())
        const codec = wrap({ contentType: undefined, encode: () => new Uint8Array(), decode })
        const seen: Array<unknown> = []
        const queue = QueueDefinition.make("q", { codec })
        yield* Consumer.start(queue, {}, ({ body, headers }) => void seen.push([body, headers]))
        broker.deliver("a", { headers: { from: "me" } })
        yield* settled
        return { asked: broker.take(), seen }
      }).pipe(Effect.scoped, Effect.provide(broker.layer))
    }

  /** A codec that opens what another one decodes, as those of envelopes do. */
  const opening = (codec: Codec<any>): Codec<any> => ({
    ...codec,
    decodeMessage: async (bytes, headers) => ({ body: await codec.decode(bytes, headers), headers })
  })
  const kinds = { decode: (codec: Codec<any>) => codec, open: opening } as const

  describe.each(Promises.foreign)("%s", (_, make) => {
    it.effect.each(["decode", "open"] as const)("comes to the handler, by %s", (kind) =>
      Effect.gen(function* () {
        const { asked, seen } = yield* consuming(async () => "decoded", kinds[kind])(make)
        assert.deepStrictEqual(seen, [["decoded", { from: "me" }]])
        assert.deepStrictEqual(asked, ["credit 2", "a:Ack"])
      })
    )

    it.effect.each(["decode", "open"] as const)("is undecodable when it is rejected, by %s", (kind) =>
      Effect.gen(function* () {
        const { asked, seen } = yield* consuming(() => Promise.reject(new Error("no")), kinds[kind])(make)
        assert.deepStrictEqual(seen, [])
        assert.deepStrictEqual(asked, ["credit 2", "a:DeadLetter"])
      })
    )
  })

  it.effect("is the body itself where its `then` is no function", () =>
    Effect.gen(function* () {
      const body = JSON.parse('{"then":"later"}')
      const { seen } = yield* consuming(async () => {}, kinds.decode)(() => body)
      assert.deepStrictEqual(seen, [[body, { from: "me" }]])
    })
  )
})
