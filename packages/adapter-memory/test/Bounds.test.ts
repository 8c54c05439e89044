import { assert, describe, it } from "@effect/vitest"
import { Broker, BrokerError, Producer } from "@requeue/core"
import { Settlement } from "@requeue/core/port"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Scope from "effect/Scope"
import { TestClock } from "effect/testing"
import { MemoryBroker } from "../src/index.ts"
import { bytes, probe, send, text } from "./harness.ts"

const boom = { name: "Boom", message: "no" }
const fork = <A, E>(effect: Effect.Effect<A, E>) => Effect.forkChild(effect, { startImmediately: true })

describe("maxMessages", () => {
  it.effect("makes publishers wait, in order, and counts what is delayed and in flight", () =>
    Effect.gen(function* () {
      const broker = yield* MemoryBroker.make({ maxMessages: 2 })
      const consumer = yield* probe(broker, "q", 1)
      yield* send(broker, "q", ["a"])
      yield* send(broker, "q", ["b"], 100)
      const first = yield* fork(send(broker, "q", ["c", "d"]))
      const second = yield* fork(send(broker, "q", ["e"]))
      yield* send(broker, "other", ["x", "y"])
      assert.deepStrictEqual(yield* broker.admin.counts("q"), { ready: 0, inFlight: 1, delayed: 1 })
      yield* consumer.settleOne(consumer.next(), Settlement.Ack)
      assert.deepStrictEqual(consumer.inbox.map(text), ["c"])
      yield* consumer.settleOne(consumer.next(), Settlement.Ack)
      // Message d joins the line only after c was stored, so e is before it.
      yield* Fiber.join(second)
      assert.deepStrictEqual(consumer.inbox.map(text), ["e"])
      assert.isUndefined(first.pollUnsafe())
      assert.strictEqual(yield* broker.admin.purge("q"), 1)
      yield* Fiber.join(first)
      assert.deepStrictEqual(yield* broker.admin.counts("q"), { ready: 1, inFlight: 1, delayed: 0 })
    })
  )

  it.effect("a publish that waits can be interrupted, and leaves nothing behind", () =>
    Effect.gen(function* () {
      const broker = yield* MemoryBroker.make({ maxMessages: 1 })
      yield* send(broker, "q", ["a"])
      const impatient = yield* fork(send(broker, "q", ["b"]))
      const patient = yield* fork(send(broker, "q", ["c"]))
      yield* Fiber.interrupt(impatient)
      const consumer = yield* probe(broker, "q", 1)
      yield* consumer.settleOne(consumer.next(), Settlement.Ack)
      yield* Fiber.join(patient)
      assert.deepStrictEqual(consumer.inbox.map(text), ["c"])
    })
  )

  it.effect("a batch of which a part has room when the broker closes says which part is stored, and which is not", () =>
    Effect.gen(function* () {
      const scope = yield* Scope.make()
      const broker = yield* Scope.provide(MemoryBroker.make({ maxMessages: 2 }), scope)
      const producer = yield* Effect.provideService(Producer.make<string>("q"), Broker.Broker, broker)
      const sent = yield* fork(Effect.flip(producer.sendBatch(["a", "b", "c", "d"].map((id) => ({ id, body: id })))))
      yield* Scope.close(scope, Exit.void)
      const error = yield* Fiber.join(sent)
      assert.instanceOf(error, BrokerError.BrokerError)
      assert.deepStrictEqual(
        error.entries?.map(({ error: why, id, status }) => [id, status, why?.reason]),
        [
          ["a", "sent", undefined],
          ["b", "sent", undefined],
          ["c", "failed", "ConnectionFailed"],
          ["d", "failed", "ConnectionFailed"]
        ]
      )
    })
  )

  it.effect("nobody overtakes those who wait, not even a consumer that is being delivered to", () =>
    Effect.gen(function* () {
      const broker = yield* MemoryBroker.make({ maxMessages: 2 })
      yield* send(broker, "q", ["a", "b"], 1000)
      const waiting = yield* fork(send(broker, "q", ["c"]))
      const later = yield* fork(send(broker, "q", ["d"]))
      const consumer = yield* probe(broker, "q", 5, (delivery) => {
        if (text(delivery) === "c") Effect.runFork(send(broker, "q", ["pushy"]))
      })
      assert.strictEqual(yield* broker.admin.purge("q"), 2)
      yield* Fiber.join(waiting)
      yield* Fiber.join(later)
      assert.deepStrictEqual(consumer.inbox.map(text), ["c", "d"])
      yield* consumer.settleOne(consumer.inbox[0]!, Settlement.Ack)
      assert.deepStrictEqual(consumer.inbox.map(text), ["c", "d", "pushy"])
    })
  )

  it.effect("retries, releases and dead letters never wait", () =>
    Effect.gen(function* () {
      const broker = yield* MemoryBroker.make({ maxMessages: 1 })
      yield* send(broker, "q.dlq", ["full"])
      yield* send(broker, "q", ["a"])
      const waiting = yield* fork(send(broker, "q", ["b"]))
      const consumer = yield* probe(broker, "q", 1)
      yield* consumer.settleOne(consumer.next(), Settlement.Retry(0))
      yield* consumer.settleOne(consumer.next(), Settlement.Release())
      yield* consumer.settleOne(consumer.next(), Settlement.Retry(10))
      yield* TestClock.adjust(10)
      assert.isUndefined(waiting.pollUnsafe())
      yield* consumer.settleOne(consumer.next(), Settlement.DeadLetter("permanent", "q.dlq", boom))
      assert.strictEqual((yield* broker.admin.counts("q.dlq")).ready, 2)
      yield* Fiber.join(waiting)
    })
  )

  it.effect("a publish that waits when the broker closes fails, and so does every later one", () =>
    Effect.gen(function* () {
      const scope = yield* Scope.make()
      const broker = yield* Scope.provide(MemoryBroker.make({ maxMessages: 1 }), scope)
      yield* send(broker, "q", ["a"])
      const waiting = yield* fork(Effect.flip(send(broker, "q", ["b"])))
      yield* Scope.close(scope, Exit.void)
      assert.strictEqual((yield* Fiber.join(waiting)).reason, "ConnectionFailed")
      assert.strictEqual((yield* Effect.flip(send(broker, "q", ["c"]))).reason, "ConnectionFailed")
    })
  )
})

it.effect("maxBodySize: one body too many and nothing of the call is stored", () =>
  Effect.gen(function* () {
    const { broker, control } = yield* MemoryBroker.makeControlled({ maxBodySize: 3 })
    const error = yield* Effect.flip(send(broker, "q", ["abc", "abcd"]))
    assert.strictEqual(error.reason, "BodyTooLarge")
    assert.match(error.message, /4 bytes.*limit is 3/)
    assert.strictEqual((yield* Effect.flip(control.publishRaw("q", bytes("abcd")))).reason, "BodyTooLarge")
    assert.strictEqual((yield* broker.admin.counts("q")).ready, 0)
  })
)
