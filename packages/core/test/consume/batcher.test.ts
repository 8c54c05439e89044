import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { TestClock } from "effect/testing"
import * as fc from "fast-check"
import * as BatchPolicy from "../../src/policy/BatchPolicy.ts"
import * as Batcher from "../../src/consume/internal/batcher.ts"
import * as Timers from "../../src/runtime/Timers.ts"
import { ids, item } from "../items.ts"

const start = Effect.fnUntraced(function* (options: BatchPolicy.Options) {
  const timers = yield* Timers.make
  const due: Array<number> = []
  const policy = BatchPolicy.make(options)
  const batcher = Batcher.make({ policy, timers, random: () => 0, onDue: () => due.push(timers.now()) })
  const push = (...names: ReadonlyArray<string>) =>
    names.forEach((name) => batcher.push(item(name, timers.now()), false))
  return { batcher, due, push, timers }
})

describe("batcher", () => {
  it.effect("a full batch is due at once", () =>
    Effect.gen(function* () {
      const { batcher, push } = yield* start({ maxBatchSize: 3 })
      push("a", "b")
      assert.isUndefined(batcher.take(10))
      push("c", "d")
      assert.strictEqual(ids(batcher.take(10)), "abc")
      assert.isUndefined(batcher.take(10))
      assert.strictEqual(batcher.size(), 1)
    })
  )

  it.effect("the time runs from the first message; later ones do not extend it", () =>
    Effect.gen(function* () {
      const { batcher, due, push } = yield* start({ maxBatchSize: 10, maxBatchTimeout: 100 })
      push("a")
      yield* TestClock.adjust(60)
      push("b")
      yield* TestClock.adjust(39)
      assert.isUndefined(batcher.take(10))
      assert.deepStrictEqual(due, [])
      yield* TestClock.adjust(1)
      assert.deepStrictEqual(due, [100])
      assert.strictEqual(ids(batcher.take(10)), "ab")
    })
  )

  it.effect("a timer never outlives its batch", () =>
    Effect.gen(function* () {
      const { batcher, due, push } = yield* start({ maxBatchSize: 2, maxBatchTimeout: 100 })
      push("a")
      yield* TestClock.adjust(90)
      push("b")
      assert.strictEqual(ids(batcher.take(2)), "ab")
      push("c")
      yield* TestClock.adjust(99)
      assert.deepStrictEqual(due, [])
      assert.isUndefined(batcher.take(2))
      yield* TestClock.adjust(1)
      assert.deepStrictEqual(due, [190])
    })
  )

  it.effect("messages that did not fit into a batch keep their own time", () =>
    Effect.gen(function* () {
      const { batcher, due, push } = yield* start({ maxBatchSize: 2, maxBatchTimeout: 100 })
      push("a", "b")
      yield* TestClock.adjust(40)
      push("c")
      assert.strictEqual(ids(batcher.take(2)), "ab")
      yield* TestClock.adjust(99)
      assert.isUndefined(batcher.take(2))
      yield* TestClock.adjust(1)
      assert.deepStrictEqual(due, [140])
      assert.strictEqual(ids(batcher.take(2)), "c")
    })
  )

  it.effect("what is left has its own time when the batch before it was taken late", () =>
    Effect.gen(function* () {
      const { batcher, due, push } = yield* start({ maxBatchSize: 2, maxBatchTimeout: 100 })
      push("a", "b")
      yield* TestClock.adjust(50)
      push("c")
      yield* TestClock.adjust(50)
      assert.strictEqual(ids(batcher.take(2)), "ab")
      yield* TestClock.adjust(50)
      assert.deepStrictEqual(due, [100, 150])
      assert.strictEqual(ids(batcher.take(2)), "c")
    })
  )

  it.effect("a timeout of 0 hands over what is there", () =>
    Effect.gen(function* () {
      const { batcher, push } = yield* start({ maxBatchSize: 10, maxBatchTimeout: 0 })
      assert.isUndefined(batcher.take(10))
      push("a", "b")
      assert.strictEqual(ids(batcher.take(10)), "ab")
      assert.isUndefined(batcher.take(10))
    })
  )

  it.effect("fewer may be taken, at once; none when none may", () =>
    Effect.gen(function* () {
      const { batcher, push } = yield* start({ maxBatchSize: 10 })
      push("a", "b")
      assert.isUndefined(batcher.take(0))
      assert.strictEqual(ids(batcher.take(1)), "a")
      assert.isUndefined(batcher.take(2))
      assert.strictEqual(ids(batcher.take(1)), "b")
    })
  )

  it.effect("what is cleared away leaves no timer", () =>
    Effect.gen(function* () {
      const { batcher, due, push } = yield* start({ maxBatchTimeout: 100 })
      push("a", "b")
      assert.strictEqual(ids(batcher.clear()), "ab")
      yield* TestClock.adjust(1000)
      assert.deepStrictEqual([due.length, batcher.size()], [0, 0])
    })
  )

  it("every message leaves once, in order, in a batch of the right size and never late", async () => {
    const plan = fc.array(fc.nat({ max: 30 }), { minLength: 1, maxLength: 40 })
    const run = (gaps: ReadonlyArray<number>, maxBatchSize: number, maxBatchTimeout: number) =>
      Effect.gen(function* () {
        const timers = yield* Timers.make
        const left: Array<unknown> = []
        const arrivals = new Map<string, number>()
        const pump = () => {
          for (let batch = batcher.take(maxBatchSize); batch !== undefined; batch = batcher.take(maxBatchSize)) {
            assert.isTrue(batch.length >= 1 && batch.length <= maxBatchSize)
            const waited = timers.now() - batch[0]!.arrived
            assert.isTrue(batch.length === maxBatchSize ? waited <= maxBatchTimeout : waited === maxBatchTimeout)
            left.push(...batch.map(({ key }) => key))
          }
        }
        const policy = { maxBatchSize, maxBatchTimeout }
        const batcher = Batcher.make({ policy, timers, random: () => 0, onDue: pump })
        for (const [i, gap] of gaps.entries()) {
          yield* TestClock.adjust(gap)
          arrivals.set(String(i), timers.now())
          batcher.push(item(String(i), timers.now()), false)
          pump()
        }
        yield* TestClock.adjust(maxBatchTimeout)
        assert.deepStrictEqual(left, [...arrivals.keys()])
        assert.strictEqual(batcher.size(), 0)
      }).pipe(Effect.scoped, Effect.provide(TestClock.layer()), Effect.runPromise)
    await fc.assert(fc.asyncProperty(plan, fc.integer({ min: 1, max: 5 }), fc.nat({ max: 100 }), run), { numRuns: 100 })
  })

  it.effect("those that must run alone are no part of a batch, and are drawn by lot", () =>
    Effect.gen(function* () {
      const { batcher, push } = yield* start({ maxBatchSize: 2 })
      for (const name of ["x", "y", "z"]) batcher.push(item(name), true)
      push("a", "b")
      assert.deepStrictEqual([batcher.suspects(), batcher.size()], [3, 5])
      assert.strictEqual(ids(batcher.take(10)), "ab")
      const [first, x] = [batcher.takeSuspect(), item("x")]
      assert.deepStrictEqual([first.key, batcher.suspects(), batcher.size()], [x.key, 2, 2])
      assert.strictEqual(ids(batcher.clear()), "yz")
      assert.deepStrictEqual([batcher.suspects(), batcher.size()], [0, 0])
    })
  )

  it.effect("one that is lost leaves no timer, and takes nobody along", () =>
    Effect.gen(function* () {
      const { batcher, due } = yield* start({ maxBatchSize: 3, maxBatchTimeout: 100 })
      const [a, b] = [item("a"), item("b")]
      batcher.push(a, false)
      batcher.delete(b)
      assert.strictEqual(batcher.size(), 1)
      batcher.delete(a)
      yield* TestClock.adjust(200)
      assert.deepStrictEqual([batcher.size(), due], [0, []])
    })
  )

  it.effect("when a connection is lost with thousands that wait, none of them is searched for among the others", () =>
    Effect.gen(function* () {
      const count = 10_000
      const { batcher } = yield* start({ maxBatchSize: 100 })
      const waiting = Array.from({ length: count }, (_, index) => item(String(index)))
      for (const [index, one] of waiting.entries()) batcher.push(one, index % 2 === 1)
      const seen = yield* Effect.sync(() => elementsSeen(() => waiting.toReversed().forEach(batcher.delete)))
      assert.isAtMost(seen, 4 * count)
      assert.deepStrictEqual([batcher.size(), batcher.suspects(), batcher.take(1)], [0, 0, undefined])
    })
  )
})

const methods = [
  "indexOf",
  "lastIndexOf",
  "includes",
  "findIndex",
  "find",
  "filter",
  "slice",
  "splice",
  "shift"
] as const

/** How many elements have the arrays that are searched, copied or moved while this runs, counted each time. */
const elementsSeen = (run: () => void): number => {
  let seen = 0
  const original = methods.map((name) => [name, Array.prototype[name]] as const)
  for (const [name, method] of original) {
    const counting = function (this: ReadonlyArray<unknown>, ...args: ReadonlyArray<unknown>): unknown {
      seen += this.length
      return Reflect.apply(method, this, args)
    }
    Object.assign(Array.prototype, { [name]: counting })
  }
  try {
    run()
  } finally {
    for (const [name, method] of original) Object.assign(Array.prototype, { [name]: method })
  }
  return seen
}
