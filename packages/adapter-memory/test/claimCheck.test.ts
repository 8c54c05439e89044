/** Large bodies in a store, from a program's send to its handler, and what becomes of a message whose store fails. */
import { deadLetters } from "@requeue/operations/promise"
import { assert, describe, it } from "@effect/vitest"
import {
  BrokerError,
  Codec,
  Consumer,
  ConsumerBackoff,
  type EncodeError,
  Producer,
  QueueDefinition,
  RetryPolicy
} from "@requeue/core"
import { ClaimCheck } from "@requeue/codecs"
import { connect, queue as define, text } from "@requeue/core/promise"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import { TestClock } from "effect/testing"
import { MemoryBroker } from "../src/index.ts"

const memory = () => {
  const bodies = new Map<string, Uint8Array>()
  const store: ClaimCheck.Store = {
    name: "memory",
    put: async (bytes) => {
      const key = `k${bodies.size}`
      bodies.set(key, new Uint8Array(bytes))
      return key
    },
    get: async (key) => bodies.get(key)
  }
  return { bodies, store }
}

const large = "a".repeat(1000)

describe("a large body", () => {
  it("is stored once, and read at each attempt and after a redrive; what travels is the pointer", async () => {
    const { bodies, store } = memory()
    const seen: Array<unknown> = []
    const pages = define("pages", { codec: ClaimCheck.make(text, { store, threshold: 100 }) })
    await using requeue = await connect(MemoryBroker.layer(), { logLevel: "None" })
    const [dead, again] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    const onEvent = ({ _tag }: { readonly _tag: string }) => void (_tag === "DeadLettered" && dead.resolve())
    await requeue.consume(pages, { retry: { maxRetries: 1 }, retryDelay: 0, onEvent }, async ({ body, headers }) => {
      seen.push([body, headers])
      if (seen.length === 3) return again.resolve()
      throw new Error("no")
    })
    await requeue.send(pages, large, { headers: { tenant: "a" } })
    await dead.promise
    const letters = deadLetters(requeue, "pages.dlq")
    const [letter] = await letters.list()
    assert.deepStrictEqual(Codec.json.decode(letter!.body, {}), { key: "k0", size: 1000 })
    await letters.redrive()
    await again.promise
    const headers = { "content-type": "text/plain; charset=utf-8", tenant: "a" }
    assert.deepStrictEqual(
      seen,
      [1, 2, 3].map(() => [large, headers])
    )
    assert.deepStrictEqual([...bodies.keys()], ["k0"])
  })

  it.effect(
    "that is lost is a dead letter at once; while its store is down, the policy decides, and the consumer slows",
    () =>
      Effect.gen(function* () {
        const { bodies, store } = memory()
        let failures = 2
        const get: ClaimCheck.Store["get"] = async (key) => {
          if (key === "k1" && failures-- > 0) throw new Error("down")
          return store.get(key)
        }
        const codec = ClaimCheck.make(Codec.text, { store: { ...store, get }, threshold: 100 })
        const pages = QueueDefinition.make("pages", { codec })
        const producer = yield* Producer.make(pages)
        yield* producer.sendBatch([{ body: large }, { body: large }])
        bodies.delete("k0")
        const told: Array<unknown> = []
        const retry = RetryPolicy.make({ maxRetries: 3 })
        const consumerBackoff = ConsumerBackoff.nsq()
        const options = { retry, retryDelay: "1 minute", consumerBackoff, concurrency: 2 } as const
        yield* Consumer.start(
          pages,
          {
            ...options,
            onEvent: (event) => {
              if (event._tag === "DeadLettered") told.push([event.reason, event.error.name])
              if (event._tag === "AttemptFailed") told.push(`${event.error.name}: ${event.error.message}`)
            }
          },
          ({ attempts }) => void told.push(attempts)
        )
        yield* TestClock.adjust("10 minutes")
        const down = "StoreError: ClaimCheck: get k1 in memory: Error: down"
        assert.sameDeepMembers(told, [["undecodable", "LostBodyError"], down, down, 3])
      }).pipe(Effect.scoped, Effect.provide(MemoryBroker.layer()))
  )
})

describe("a send", () => {
  /** Sends by a codec whose store answers as told. */
  const sending = (put: ClaimCheck.Store["put"], publishTimeout?: "1 second") =>
    Effect.gen(function* () {
      const codec = ClaimCheck.make(Codec.text, { store: { ...memory().store, put }, threshold: 100 })
      return yield* Producer.make(QueueDefinition.make("pages", { codec }), { publishTimeout })
    })

  it.effect("fails when the store does, with its error and its remedy, and nothing is published", () =>
    Effect.gen(function* () {
      const cause = new Error("denied")
      const producer = yield* sending(() => Promise.reject(cause))
      const error = yield* Effect.flip(producer.sendBatch([{ body: "small" }, { body: large, id: "m7" }]))
      assert.strictEqual(error._tag, "EncodeError")
      const { cause: told, message } = error as EncodeError.EncodeError // Its tag says so.
      assert.instanceOf(told, ClaimCheck.StoreError)
      assert.strictEqual(told.cause, cause)
      assert.include(
        message,
        "send to queue pages: entries[1].body (id m7): StoreError: ClaimCheck: put in memory: Error: denied. Try again"
      )
      const ids: Array<string> = []
      yield* Consumer.start("pages", {}, ({ id }) => void ids.push(id))
      yield* TestClock.adjust("1 minute")
      assert.isEmpty(ids)
    }).pipe(Effect.scoped, Effect.provide(MemoryBroker.layer()))
  )

  it.effect("stores nothing before all else has been checked, and no body that the broker would not take is sent", () =>
    Effect.gen(function* () {
      let puts = 0
      const producer = yield* sending(async () => `k${++puts}`)
      const wrong = producer.sendBatch([{ body: large }, { body: large, id: "" }])
      assert.strictEqual((yield* Effect.flip(wrong))._tag, "EncodeError")
      assert.strictEqual(puts, 0)
      const huge = { name: "memory", put: async () => "k".repeat(2000), get: async () => undefined }
      const codec = ClaimCheck.make(Codec.text, { store: huge, threshold: 100 })
      const other = yield* Producer.make(QueueDefinition.make("pages", { codec }))
      const error = yield* Effect.flip(other.sendBatch([{ body: "small" }, { body: large, id: "m7" }]))
      assert.instanceOf(error, BrokerError.BrokerError)
      assert.strictEqual(error.reason, "BodyTooLarge")
      assert.include(error.message, "entries[1].body (id m7): the body has ")
    }).pipe(Effect.provide(MemoryBroker.layer({ maxBodySize: 1500 })))
  )

  it.effect("waits for the store as long as for the broker", () =>
    Effect.gen(function* () {
      const producer = yield* sending(() => new Promise(() => {}), "1 second")
      const fiber = yield* Effect.forkChild(Effect.flip(producer.send(large)), { startImmediately: true })
      yield* TestClock.adjust("1 second")
      const error = yield* Fiber.join(fiber)
      assert.include(
        error.message,
        "the codec did not encode the message within 1s; nothing was sent. Send the message again later"
      )
    }).pipe(Effect.provide(MemoryBroker.layer()))
  )

  it("whose body is being stored when the connection closes is waited for", async () => {
    const { store } = memory()
    const gate = Promise.withResolvers<void>()
    const put: ClaimCheck.Store["put"] = async (bytes) => {
      await gate.promise
      return store.put(bytes)
    }
    const pages = define("pages", { codec: ClaimCheck.make(text, { store: { ...store, put }, threshold: 100 }) })
    const requeue = await connect(MemoryBroker.layer(), { logLevel: "None" })
    const sent = requeue.send(pages, large, { id: "p1" })
    const closed = requeue.close()
    gate.resolve()
    assert.strictEqual(await sent, "p1")
    await closed
  })
})
