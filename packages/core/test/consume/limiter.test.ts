/** A rate limit at work: the credit that it leaves, what waits for it, and other things that hold a consumer back. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { TestClock } from "effect/testing"
import * as fc from "fast-check"
import * as BatchPolicy from "../../src/policy/BatchPolicy.ts"
import * as Consumer from "../../src/consume/Consumer.ts"
import * as ConsumerBackoff from "../../src/policy/ConsumerBackoff.ts"
import * as Limiter from "../../src/consume/internal/limiter.ts"
import * as RateLimit from "../../src/policy/RateLimit.ts"
import * as RetryPolicy from "../../src/policy/RetryPolicy.ts"
import * as Scripted from "../scripted.ts"
import * as GroupLaws from "./groupLaws.ts"

const credits = (log: ReadonlyArray<string>) => log.filter((line) => line.startsWith("credit"))

describe("the credit", () => {
  it.effect("falls to 0 while the limit holds, and rises a second before a run may begin", () => {
    const broker = Scripted.make()
    const begun: Array<string> = []
    return Effect.gen(function* () {
      const rateLimit = { max: 2, per: "10 seconds" } as const
      yield* Consumer.start("q", { concurrency: 4, rateLimit }, ({ id }) => void begun.push(id))
      assert.deepStrictEqual(credits(broker.take()), ["credit 2"])
      broker.deliver("a")
      yield* TestClock.adjust(3000)
      assert.deepStrictEqual(credits(broker.take()), ["credit 1"])
      broker.deliver("b")
      // It was on its way: it stays, and begins when it may.
      broker.deliver("c")
      yield* TestClock.adjust(3000)
      const held = broker.take()
      assert.deepStrictEqual(credits(held), ["credit 0"])
      assert.notInclude(held.join(), "Release")
      yield* TestClock.adjust(2999)
      assert.deepStrictEqual(credits(broker.take()), [])
      yield* TestClock.adjust(1)
      assert.deepStrictEqual(credits(broker.take()), ["credit 1"])
      assert.deepStrictEqual(begun, ["a", "b"])
      yield* TestClock.adjust(1000)
      assert.deepStrictEqual(begun, ["a", "b", "c"])
    }).pipe(Effect.scoped, Effect.provide(broker.layer))
  })

  it.effect("does not change where the limit never holds for a second", () => {
    const broker = Scripted.make()
    return Effect.gen(function* () {
      yield* Consumer.start("q", { rateLimit: { max: 2, per: "1 second" } }, () => {})
      for (let n = 0; n < 20; n++) {
        broker.deliver(`m${n}`)
        yield* TestClock.adjust(500)
      }
      assert.deepStrictEqual(credits(broker.take()), ["credit 2"])
    }).pipe(Effect.scoped, Effect.provide(broker.layer))
  })
})

describe("a batch that is not full", () => {
  it.effect("arrives so early that it is due when the limit opens", () => {
    const broker = Scripted.make()
    const sizes: Array<number> = []
    return Effect.gen(function* () {
      const batch = BatchPolicy.make({ maxBatchSize: 2, maxBatchTimeout: "20 seconds" })
      yield* Consumer.startBatch("q", { batch, rateLimit: { max: 1, per: "1 minute" } }, ({ messages }) => {
        sizes.push(messages.length)
      })
      for (const id of ["a", "b"]) broker.deliver(id)
      yield* TestClock.adjust("39 seconds")
      const before = credits(broker.take())
      assert.strictEqual(before.at(-1), "credit 2")
      broker.deliver("c")
      yield* TestClock.adjust("20999 millis")
      assert.deepStrictEqual(sizes, [2])
      yield* TestClock.adjust("1 milli")
      assert.deepStrictEqual(sizes, [2, 1])
    }).pipe(Effect.scoped, Effect.provide(broker.layer))
  })
})

it("counts a run from when its handler began, though that handler has failed and run again meanwhile", () => {
  let now = 0
  const timers = { now: () => now, after: () => ({ run: undefined, waits: false }), cancel: () => {} }
  const limit = RateLimit.make({ max: 2, per: 400 })
  const limiter = Limiter.make({ limit, timers, window: 1, perRun: 1, maxBatchTimeout: 0 })
  limiter.open(() => {})
  const runs: Array<() => void> = []
  const run = limiter.counted(() => {
    // A process that has just started is slow.
    now += 5
    runs.shift()?.()
    return { interrupt: () => {} }
  })
  // Only the number of its reruns counts here.
  const begin = () => run({ reruns: 1 } as never, () => {})
  runs.push(begin)
  begin()
  now = 404
  assert.strictEqual(limiter.room(), 0)
  now = 405
  assert.strictEqual(limiter.room(), 1)
})

describe("what waits for the limit", () => {
  it.effect("has its lease extended, and is no sign that the consumer is stalled", () => {
    const broker = Scripted.make({ lease: { duration: 30_000, max: 43_200_000 }, connectionBound: false })
    return Effect.gen(function* () {
      const consumer = yield* Consumer.start("q", { rateLimit: { max: 1, per: "1 hour" } }, () => {})
      broker.deliver("a")
      broker.deliver("b")
      yield* TestClock.adjust("5 minutes")
      assert.include(broker.take(), "extend b")
      assert.strictEqual(consumer.health().state, "running")
      yield* TestClock.adjust("55 minutes")
      assert.include(broker.take(), "b:Ack")
    }).pipe(Effect.scoped, Effect.provide(broker.layer))
  })

  it.effect("goes back at once when the consumer drains: messages, and those of a batch; what has run counts", () => {
    const broker = Scripted.make()
    const begun: Array<string> = []
    return Effect.gen(function* () {
      const batch = BatchPolicy.make({ maxBatchSize: 3, maxBatchTimeout: 0 })
      const retry = RetryPolicy.make({ immediate: 2 })
      const consumer = yield* Consumer.start("q", { rateLimit: { max: 1, per: "1 hour" }, batch, retry }, ({ id }) => {
        begun.push(id)
        throw new Error("no")
      })
      for (const id of ["a", "b", "c", "d"]) broker.deliver(id)
      yield* TestClock.adjust("1 minute")
      assert.deepStrictEqual(begun, ["a"])
      broker.take()
      const { complete, elapsed } = yield* consumer.drain("1 hour")
      assert.deepStrictEqual([complete, elapsed], [true, 0])
      const settled = broker
        .take()
        .filter((line) => line.includes(":"))
        .join(" ")
      assert.deepStrictEqual(settled.split(" ").toSorted(), ["b:Release", "c:Release", "d:Release"])
    }).pipe(Effect.scoped, Effect.provide(broker.layer))
  })
})

it.effect("an immediate retry takes no room of a message whose run is about to begin", () => {
  const broker = Scripted.make()
  const begun: Array<string> = []
  return Effect.gen(function* () {
    const batch = BatchPolicy.make({ maxBatchSize: 2, maxBatchTimeout: 0 })
    const retry = RetryPolicy.make({ immediate: 1 })
    const rateLimit = { max: 2, per: "1 hour" } as const
    yield* Consumer.start("q", { batch, rateLimit, retry }, ({ id }) => {
      begun.push(id)
      throw new Error("no")
    })
    for (const id of ["a", "b"]) broker.deliver(id)
    yield* TestClock.adjust("1 minute")
    assert.deepStrictEqual(begun, ["a", "b"])
  }).pipe(Effect.scoped, Effect.provide(broker.layer))
})

describe("beside the limit", () => {
  it.effect("a pause of the consumer backoff holds, and its probe waits for the limit", () => {
    const broker = Scripted.make()
    const begun: Array<string> = []
    return Effect.gen(function* () {
      const consumerBackoff = ConsumerBackoff.make()
      yield* Consumer.start("q", { consumerBackoff, rateLimit: { max: 1, per: "5 seconds" } }, ({ id }) => {
        begun.push(id)
        if (id === "a") throw new Error("no")
      })
      broker.deliver("a")
      yield* TestClock.adjust(3999)
      assert.deepStrictEqual(credits(broker.take()), ["credit 1", "credit 0"])
      yield* TestClock.adjust(1)
      assert.deepStrictEqual(credits(broker.take()), ["credit 1"])
      broker.deliver("b")
      assert.deepStrictEqual(begun, ["a"])
      yield* TestClock.adjust(1000)
      assert.deepStrictEqual(begun, ["a", "b"])
    }).pipe(Effect.scoped, Effect.provide(broker.layer))
  })

  it("groups keep their order, whatever fails and pauses", () =>
    fc.assert(
      fc.asyncProperty(
        GroupLaws.plans,
        fc.record({ max: fc.integer({ min: 1, max: 4 }), per: fc.integer({ min: 1, max: 100 }) }),
        (plan, rateLimit) => Effect.runPromise(GroupLaws.live(plan, { rateLimit }))
      ),
      { numRuns: 40 }
    ))
})
