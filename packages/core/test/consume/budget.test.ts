/** What a budget of dead letters pays, and what it has back. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { TestClock } from "effect/testing"
import * as Consumer from "../../src/consume/Consumer.ts"
import * as RetryPolicy from "../../src/policy/RetryPolicy.ts"
import * as Scripted from "../scripted.ts"

const retry = RetryPolicy.make({ maxRetries: 0 })
const gone = { reason: "LeaseLost", fate: "lost" } as const

/** Fails messages whose id begins with "bad". */
const handler = ({ id }: { readonly id: string }): void => {
  if (id.startsWith("bad")) throw new Error("no")
}

describe("a budget of dead letters", () => {
  it.effect("given as a plain object is one", () => {
    const broker = Scripted.make()
    return Effect.gen(function* () {
      const consumer = yield* Consumer.start("q", { retry, deadLetterBudget: { max: 2 } }, handler)
      for (const id of ["bad 1", "bad 2"]) broker.deliver(id)
      yield* Effect.yieldNow
      assert.strictEqual(consumer.stats().state, "running")
      broker.deliver("bad 3")
      assert.include((yield* Effect.flip(consumer.done)).message, "2 messages")
    }).pipe(Effect.scoped, Effect.provide(broker.layer))
  })

  it.effect("earns a dead letter by ten successes", () => {
    const broker = Scripted.make()
    return Effect.gen(function* () {
      const consumer = yield* Consumer.start("q", { retry, deadLetterBudget: { max: 1 } }, handler)
      for (const id of ["bad 1", ...Array.from({ length: 10 }, (_, index) => `good ${index}`), "bad 2"]) {
        broker.deliver(id)
        yield* Effect.yieldNow
      }
      assert.strictEqual(consumer.stats().state, "running")
      broker.deliver("bad 3")
      assert.include((yield* Effect.flip(consumer.done)).message, "stopped")
    }).pipe(Effect.scoped, Effect.provide(broker.layer))
  })

  it.effect("has back what was lost with its lease, and pays for its redelivery", () => {
    const broker = Scripted.make()
    return Effect.gen(function* () {
      const consumer = yield* Consumer.start("q", { retry, deadLetterBudget: { max: 1 } }, handler)
      broker.faults.settle = () => gone
      for (const id of ["bad 1", "bad 2", "bad 3"]) {
        broker.deliver(id)
        yield* Effect.yieldNow
      }
      assert.strictEqual(consumer.stats().state, "running")
      broker.faults.settle = () => undefined
      broker.deliver("bad 1", { attempts: 2 })
      yield* Effect.yieldNow
      assert.strictEqual(consumer.stats().state, "running")
      broker.deliver("bad 2", { attempts: 2 })
      assert.include((yield* Effect.flip(consumer.done)).message, "stopped")
    }).pipe(Effect.scoped, Effect.provide(broker.layer))
  })

  it.effect("has back what the broker has no time for", () => {
    const broker = Scripted.make()
    return Effect.gen(function* () {
      const options = { retry, deadLetterBudget: { max: 1 }, concurrency: 5 }
      const consumer = yield* Consumer.start("q", options, handler)
      broker.faults.settle = () => "Throttled"
      broker.deliver("bad 1")
      yield* Effect.yieldNow
      broker.deliver("bad 2")
      yield* TestClock.adjust("1 minute")
      assert.strictEqual(consumer.stats().state, "running")
    }).pipe(Effect.scoped, Effect.provide(broker.layer))
  })

  it.effect("given as a plain object earns as much as one that was made", () => {
    const broker = Scripted.make()
    return Effect.gen(function* () {
      const consumer = yield* Consumer.start("q", { retry, deadLetterBudget: { max: 1 } }, handler)
      for (const id of ["good", "bad"]) {
        broker.deliver(id)
        yield* Effect.yieldNow
      }
      assert.strictEqual(consumer.stats().state, "running")
    }).pipe(Effect.scoped, Effect.provide(broker.layer))
  })

  it.effect("pays for a letter that the broker has refused first, and has stored in the end", () => {
    const broker = Scripted.make()
    return Effect.gen(function* () {
      const consumer = yield* Consumer.start("q", { retry, deadLetterBudget: { max: 1 } }, handler)
      broker.faults.settle = () => "QueueFull"
      broker.deliver("bad 1")
      yield* TestClock.adjust(500)
      broker.faults.settle = () => undefined
      yield* TestClock.adjust(500)
      assert.deepStrictEqual([consumer.health().quarantined, consumer.stats().state], [0, "running"])
      broker.deliver("bad 2")
      yield* TestClock.adjust(1)
      assert.strictEqual(consumer.stats().state, "stopped")
    }).pipe(Effect.scoped, Effect.provide(broker.layer))
  })

  it.effect("earns once for a success: when the broker has taken the ack", () => {
    const broker = Scripted.make()
    return Effect.gen(function* () {
      const options = { retry, deadLetterBudget: { max: 1, perSuccess: 0.5 } }
      const consumer = yield* Consumer.start("q", options, handler)
      broker.deliver("bad 1")
      yield* Effect.yieldNow
      // One ack that is lost, repeated, and repeated once more on a redelivery that was faster than its answer.
      broker.faults.settle = () => gone
      broker.deliver("good")
      yield* Effect.yieldNow
      broker.faults.settle = () => undefined
      broker.faults.latency = 100
      broker.deliver("good", { attempts: 2 })
      yield* TestClock.adjust(10)
      broker.reconnect()
      broker.deliver("good", { attempts: 3 })
      yield* TestClock.adjust(500)
      broker.faults.latency = 0
      broker.deliver("bad 2")
      assert.include((yield* Effect.flip(consumer.done)).message, "stopped")
    }).pipe(Effect.scoped, Effect.provide(broker.layer))
  })

  it.effect("earns nothing for a duplicate of a dead letter, however often it is lost", () => {
    const broker = Scripted.make()
    return Effect.gen(function* () {
      const options = { retry, deadLetterBudget: { max: 1, perSuccess: 1 } }
      const consumer = yield* Consumer.start("q", options, handler)
      broker.faults.latency = 100
      broker.deliver("bad 1")
      yield* TestClock.adjust(50)
      broker.reconnect()
      broker.deliver("bad 1", { attempts: 2 })
      broker.reconnect()
      yield* TestClock.adjust(50)
      broker.faults.latency = 0
      broker.deliver("bad 1", { attempts: 3 })
      yield* Effect.yieldNow
      broker.deliver("bad 2")
      assert.include((yield* Effect.flip(consumer.done)).message, "stopped")
    }).pipe(Effect.scoped, Effect.provide(broker.layer))
  })
})
