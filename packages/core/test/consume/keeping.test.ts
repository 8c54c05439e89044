/** Messages that this process keeps because the broker refuses what they need. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import { TestClock } from "effect/testing"
import * as Consumer from "../../src/consume/Consumer.ts"
import * as Metadata from "../../src/message/Metadata.ts"
import * as RetryPolicy from "../../src/policy/RetryPolicy.ts"
import * as Scripted from "../scripted.ts"

const fail = (): never => {
  throw new Error("no")
}

/** The seconds at which the broker was asked, in so many seconds. */
const asked = (broker: ReturnType<typeof Scripted.make>, seconds: number) =>
  Effect.gen(function* () {
    const at: Array<number> = []
    for (let second = 1; second <= seconds; second++) {
      yield* TestClock.adjust(1000)
      if (broker.take().some((call) => call.includes(":"))) at.push(second)
    }
    return at
  })

describe("a refused settlement", () => {
  it.effect("is asked again after pauses that double up to a minute", () => {
    const broker = Scripted.make()
    return Effect.gen(function* () {
      yield* Consumer.start("q", {}, () => {})
      broker.faults.settle = () => "AccessRefused"
      broker.deliver("a")
      yield* Effect.yieldNow
      broker.take()
      assert.deepStrictEqual(yield* asked(broker, 250), [1, 3, 7, 15, 31, 63, 123, 183, 243])
    }).pipe(Effect.scoped, Effect.provide(broker.layer))
  })

  it.effect("is reported once, as failed and as quarantined, however often it is sent again", () => {
    const broker = Scripted.make()
    return Effect.gen(function* () {
      const events: Array<string> = []
      yield* Consumer.start("q", { onEvent: ({ _tag }) => void events.push(_tag) }, () => {})
      broker.faults.settle = () => "AccessRefused"
      broker.deliver("a")
      yield* TestClock.adjust(60_000)
      const failures = events.filter((event) => event === "SettleFailed" || event === "Quarantined")
      assert.deepStrictEqual(failures, ["SettleFailed", "Quarantined"])
    }).pipe(Effect.scoped, Effect.provide(broker.layer))
  })

  it.effect("is reported once, however many smaller copies the broker refuses", () => {
    const broker = Scripted.make()
    return Effect.gen(function* () {
      const events: Array<string> = []
      const retry = RetryPolicy.make({ maxRetries: 0 })
      yield* Consumer.start("q", { retry, onEvent: ({ _tag }) => void events.push(_tag) }, fail)
      broker.faults.settle = ({ settlement }) =>
        "cut" in settlement && settlement.cut === "all" ? undefined : "BodyTooLarge"
      broker.deliver("a")
      yield* TestClock.adjust(1000)
      assert.deepStrictEqual(
        events.filter((event) => event === "SettleFailed" || event === "DeadLettered"),
        ["SettleFailed", "DeadLettered"]
      )
    }).pipe(Effect.scoped, Effect.provide(broker.layer))
  })

  it.effect("of a release is one as well: forgotten, it would take up credit for ever", () => {
    const broker = Scripted.make()
    return Effect.gen(function* () {
      const consumer = yield* Consumer.start("q", {}, () => {})
      broker.faults.settle = ({ settlement }) => (settlement._tag === "Release" ? "AccessRefused" : undefined)
      broker.deliver("early", { metadata: { ...Metadata.make("early", 0), notBefore: 5000 } })
      yield* TestClock.adjust(4000)
      assert.strictEqual(consumer.health().quarantined, 0)
      yield* TestClock.adjust(1000)
      assert.strictEqual(consumer.health().quarantined, 1)
      broker.faults.settle = () => undefined
      broker.take()
      yield* TestClock.adjust(1000)
      assert.deepStrictEqual(broker.take(), ["early:Release", "credit 2"])
    }).pipe(Effect.scoped, Effect.provide(broker.layer))
  })

  it.effect("of a message that waits for its time goes back at that time, and not before", () => {
    const broker = Scripted.make()
    return Effect.gen(function* () {
      yield* Consumer.start("q", {}, () => {})
      broker.faults.settle = ({ settlement }) =>
        settlement._tag === "Release" && settlement.delay > 0 ? "BodyTooLarge" : undefined
      broker.deliver("early", { metadata: { ...Metadata.make("early", 0), notBefore: 5000 } })
      yield* Effect.yieldNow
      broker.take()
      assert.deepStrictEqual(yield* asked(broker, 10), [5])
    }).pipe(Effect.scoped, Effect.provide(broker.layer))
  })

  it.effect("of a delayed retry that was lost again and again goes back when its delay is over", () => {
    const broker = Scripted.make()
    return Effect.gen(function* () {
      const consumer = yield* Consumer.start("q", { retryDelay: 10_000 }, fail)
      broker.faults.settle = () => ({ reason: "ConnectionLost", fate: "lost" })
      for (const attempts of [1, 2]) {
        broker.deliver("a", { attempts })
        yield* Effect.yieldNow
      }
      broker.faults.settle = ({ settlement }) =>
        settlement._tag === "Retry" && settlement.delay > 0 ? "BodyTooLarge" : undefined
      broker.deliver("a", { attempts: 3 })
      // After two losses it is asked for a second later, and refused.
      yield* TestClock.adjust(1000)
      broker.take()
      assert.deepStrictEqual([yield* asked(broker, 15), consumer.health().quarantined], [[9], 0])
    }).pipe(Effect.scoped, Effect.provide(broker.layer))
  })

  it.effect("of a delayed retry that is lost while it waits keeps the rest of its delay", () => {
    const broker = Scripted.make()
    return Effect.gen(function* () {
      const delays: Array<number> = []
      yield* Consumer.start("q", { retryDelay: 10_000 }, fail)
      broker.faults.settle = ({ settlement }) => {
        if (settlement._tag === "Retry") delays.push(settlement.delay)
        return { reason: "ConnectionLost", fate: "lost" }
      }
      for (const attempts of [1, 2, 3]) {
        broker.deliver("a", { attempts })
        yield* TestClock.adjust(500)
      }
      broker.reconnect()
      broker.deliver("a", { attempts: 4 })
      yield* TestClock.adjust(2000)
      assert.deepStrictEqual(delays, [10_000, 9500, 8500, 6500])
    }).pipe(Effect.scoped, Effect.provide(broker.layer))
  })

  it.effect("is not asked twice when its message has come again meanwhile", () => {
    const broker = Scripted.make({ lease: { duration: 1e9, max: 1e9 }, connectionBound: false })
    return Effect.gen(function* () {
      yield* Consumer.start("q", {}, fail)
      broker.faults.settle = () => "AccessRefused"
      broker.deliver("a")
      yield* Effect.yieldNow
      broker.take()
      broker.deliver("a", { attempts: 2 })
      assert.deepStrictEqual(yield* asked(broker, 20), [1, 3, 7, 15])
    }).pipe(Effect.scoped, Effect.provide(broker.layer))
  })

  it.effect("is not asked again for a delivery that came meanwhile, when the consumer drains", () => {
    const broker = Scripted.make({ lease: { duration: 1e9, max: 1e9 }, connectionBound: false })
    return Effect.gen(function* () {
      const consumer = yield* Consumer.start("q", {}, () => {})
      Object.assign(broker.faults, { latency: 1000, settle: () => "AccessRefused" })
      broker.deliver("a")
      yield* Effect.yieldNow
      const drained = yield* Effect.forkChild(consumer.drain(), { startImmediately: true })
      broker.deliver("a", { attempts: 2 })
      broker.take()
      yield* TestClock.adjust(3000)
      assert.isTrue((yield* Fiber.join(drained)).complete)
      assert.deepStrictEqual(broker.take(), ["a:Ack"])
    }).pipe(Effect.scoped, Effect.provide(broker.layer))
  })
})

describe("health", () => {
  it.effect("does not take for stalled what is kept, or held back", () => {
    const broker = Scripted.make()
    return Effect.gen(function* () {
      const consumer = yield* Consumer.start("q", { drainTimeout: 0 }, () => {})
      broker.faults.settle = () => "AccessRefused"
      broker.deliver("a")
      yield* TestClock.adjust("3 hours")
      const { lastSettled, state } = consumer.health()
      // A refusal is an answer, and no settlement.
      assert.deepStrictEqual([state, lastSettled], ["running", undefined])
    }).pipe(Effect.scoped, Effect.provide(broker.layer))
  })

  it.effect("does not take for stalled what waits here for its time", () => {
    const broker = Scripted.make()
    return Effect.gen(function* () {
      const consumer = yield* Consumer.start("q", {}, () => {})
      broker.faults.settle = () => "AccessRefused"
      broker.deliver("a", { metadata: Metadata.make("a", 0, 3_600_000) })
      yield* TestClock.adjust("50 minutes")
      assert.deepStrictEqual([consumer.health().quarantined, consumer.health().state], [0, "running"])
    }).pipe(Effect.scoped, Effect.provide(broker.layer))
  })

  it.effect("does not take for stalled what has come beside a kept message", () => {
    const broker = Scripted.make()
    return Effect.gen(function* () {
      const consumer = yield* Consumer.start("q", { drainTimeout: 0 }, () => Effect.sleep(1000))
      broker.faults.settle = () => "AccessRefused"
      broker.deliver("a", { metadata: Metadata.make("a", 0, 3_600_000) })
      yield* TestClock.adjust("50 minutes")
      broker.deliver("b")
      assert.deepStrictEqual([consumer.health().inProgress, consumer.health().state], [2, "running"])
    }).pipe(Effect.scoped, Effect.provide(broker.layer))
  })

  it.effect("does not take for stalled what is run again at once", () => {
    const broker = Scripted.make()
    return Effect.gen(function* () {
      const retry = RetryPolicy.make({ immediate: 2 })
      const slow = () => Effect.andThen(Effect.sleep("50 seconds"), Effect.fail(new Error("no")))
      const consumer = yield* Consumer.start("q", { handlerTimeout: "1 minute", drainTimeout: 0, retry }, slow)
      broker.deliver("a")
      yield* TestClock.adjust("140 seconds")
      assert.deepStrictEqual([consumer.health().inProgress, consumer.health().state], [1, "running"])
    }).pipe(Effect.scoped, Effect.provide(broker.layer))
  })

  it.effect("says of a pause by hand that it is one, however long messages wait", () => {
    const broker = Scripted.make()
    return Effect.gen(function* () {
      const consumer = yield* Consumer.start("q", { drainTimeout: 0 }, () => Effect.sleep(1000))
      consumer.pause()
      broker.deliver("a")
      yield* TestClock.adjust("3 hours")
      assert.strictEqual(consumer.health().state, "paused")
      consumer.resume()
      assert.strictEqual(consumer.health().state, "running")
    }).pipe(Effect.scoped, Effect.provide(broker.layer))
  })
})
