/** What bounds a send. */
import { assert, it } from "@effect/vitest"
import { Broker, BrokerError, Producer } from "@requeue/core"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import { TestClock } from "effect/testing"
import { MemoryBroker } from "../src/index.ts"

it.effect("a send that finds no room in time is told apart from one without a confirmation", () =>
  Effect.gen(function* () {
    const broker = yield* MemoryBroker.make()
    let published = 0
    // A driver that cannot be interrupted holds its room for longer than the send waits.
    const publish = () =>
      Effect.uninterruptible(
        Effect.andThen(
          Effect.sync(() => published++),
          Effect.sleep("1 minute")
        )
      )
    const stalled = Effect.provideService(Broker.Broker, { ...broker, publish })
    const producer = yield* stalled(Producer.make("q", { maxPending: 1, publishTimeout: "1 second" }))
    const fork = (body: number) => Effect.forkChild(Effect.flip(producer.send(body)), { startImmediately: true })
    const [first, second] = [yield* fork(1), yield* fork(2)]
    yield* TestClock.adjust("2 minutes")
    const [unconfirmed, crowded] = [yield* Fiber.join(first), yield* Fiber.join(second)]
    assert.instanceOf(unconfirmed, BrokerError.BrokerError)
    assert.instanceOf(crowded, BrokerError.BrokerError)
    assert.deepStrictEqual([unconfirmed.reason, crowded.reason], ["Timeout", "Throttled"])
    assert.include(crowded.message, "nothing was sent")
    assert.strictEqual(published, 1)
  })
)

it.effect("many sends that wait for room are not a call inside a call when the broker answers at once", () =>
  Effect.gen(function* () {
    const broker = yield* MemoryBroker.make()
    const gate = yield* Deferred.make<void>()
    let published = 0
    const publish = () => (++published === 1 ? Deferred.await(gate) : Effect.void)
    const producer = yield* Effect.provideService(Producer.make("q", { maxPending: 1 }), Broker.Broker, {
      ...broker,
      publish
    })
    const fiber = yield* Effect.forkChild(
      Effect.forEach(Array.from({ length: 20_000 }), () => producer.send(1), {
        concurrency: "unbounded",
        discard: true
      }),
      { startImmediately: true }
    )
    yield* Deferred.succeed(gate, undefined)
    yield* Fiber.join(fiber)
    assert.strictEqual(published, 20_000)
  })
)
