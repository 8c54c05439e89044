import { assert, describe, it } from "@effect/vitest"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import { TestClock } from "effect/testing"
import * as fc from "fast-check"
import * as BatchCall from "../src/internal/batchCall.ts"
import * as RequestBatcher from "../src/internal/requestBatcher.ts"

const context = { operation: "settle", queue: "q" }

const named = (name: string, httpStatusCode = 400) =>
  Object.assign(new Error("said"), { name, $metadata: { httpStatusCode } })

/** What SQS answers to each call, and the calls: which items were in each. */
const sqs = (answer: (items: ReadonlyArray<string>, call: number) => ReadonlyArray<BatchCall.Failed>) => {
  const calls: Array<ReadonlyArray<string>> = []
  const ask: BatchCall.Ask<{ readonly item: string }> = async (entries) => {
    assert.strictEqual(new Set(entries.map(({ Id }) => Id)).size, entries.length)
    const items = entries.map(({ item }) => item)
    calls.push(items)
    const Failed = answer(items, calls.length)
    return { Failed, Successful: entries.filter(({ Id }) => Failed.every((one) => one.Id !== Id)) }
  }
  return { calls, ask }
}

const failed = (index: number, Code: string, SenderFault: boolean): BatchCall.Failed => ({
  Id: String(index),
  Code,
  SenderFault
})

/** Runs with all the time that it takes. */
const send = (items: ReadonlyArray<string>, ask: BatchCall.Ask<{ readonly item: string }>, isIdempotent = false) =>
  Effect.gen(function* () {
    const fiber = yield* Effect.forkChild(
      BatchCall.call(
        items.map((item) => ({ item })),
        { ask, context, isIdempotent }
      )
    )
    for (let second = 0; second < 10; second++) {
      yield* Effect.promise(() => new Promise((resume) => setImmediate(resume)))
      yield* TestClock.adjust("1 second")
    }
    return (yield* Fiber.join(fiber)).map((error) => error?.reason)
  })

describe("a batch", () => {
  it.effect("that succeeds is one call", () =>
    Effect.gen(function* () {
      const { ask, calls } = sqs(() => [])
      assert.deepStrictEqual(yield* send(["a", "b"], ask), [undefined, undefined])
      assert.deepStrictEqual(calls, [["a", "b"]])
    })
  )

  it.effect("is asked again for what failed, and only for that", () =>
    Effect.gen(function* () {
      const { ask, calls } = sqs((_, call) => (call < 3 ? [failed(0, "InternalError", false)] : []))
      assert.deepStrictEqual(yield* send(["a", "b", "c"], ask), [undefined, undefined, undefined])
      assert.deepStrictEqual(calls, [["a", "b", "c"], ["a"], ["a"]])
    })
  )

  it.effect("is asked four times at most", () =>
    Effect.gen(function* () {
      const { ask, calls } = sqs((items) => (items[0] === "a" ? [failed(0, "InternalError", false)] : []))
      assert.deepStrictEqual(yield* send(["a", "b"], ask), ["ConnectionLost", undefined])
      assert.strictEqual(calls.length, 4)
    })
  )

  it.effect("without an answer is asked again where that does no harm, as often as one that failed in part", () =>
    Effect.gen(function* () {
      const { ask, calls } = sqs((_, call) => {
        if (call < 4) throw Object.assign(new Error("read ECONNRESET"), { code: "ECONNRESET" })
        return []
      })
      assert.deepStrictEqual(yield* send(["a", "b"], ask, true), [undefined, undefined])
      assert.strictEqual(calls.length, 4)
    })
  )

  it.effect("without an answer is one call where a second could do harm", () =>
    Effect.gen(function* () {
      const { ask, calls } = sqs(() => {
        throw Object.assign(new Error("read ECONNRESET"), { code: "ECONNRESET" })
      })
      assert.deepStrictEqual(yield* send(["a"], ask), ["ConnectionLost"])
      assert.strictEqual(calls.length, 1)
    })
  )

  it.effect("takes no entry for done of which the answer says nothing", () =>
    Effect.gen(function* () {
      let calls = 0
      const ask: BatchCall.Ask<{ readonly item: string }> = async () => {
        calls++
        return { Successful: [{ Id: "1" }] }
      }
      assert.deepStrictEqual(yield* send(["a", "b"], ask), ["Timeout", undefined])
      assert.strictEqual(calls, 1)
      assert.deepStrictEqual(yield* send(["a", "b"], ask, true), ["Timeout", undefined])
      assert.isAbove(calls, 2)
    })
  )

  it.effect("does not ask again for what is our fault", () =>
    Effect.gen(function* () {
      const { ask, calls } = sqs(() => [failed(1, "ReceiptHandleIsInvalid", true)])
      assert.deepStrictEqual(yield* send(["a", "b"], ask), [undefined, "LeaseLost"])
      assert.strictEqual(calls.length, 1)
    })
  )

  it.effect("asks again when throttled, whoever's fault that is", () =>
    Effect.gen(function* () {
      const { ask } = sqs((_, call) => (call === 1 ? [failed(0, "RequestThrottled", true)] : []))
      assert.deepStrictEqual(yield* send(["a"], ask), [undefined])
    })
  )

  it.effect("that is refused for one entry is sent one by one", () =>
    Effect.gen(function* () {
      const { ask, calls } = sqs((items) => {
        if (items.includes("bad")) throw named("InvalidMessageContents")
        return []
      })
      assert.deepStrictEqual(yield* send(["a", "bad", "c"], ask), [undefined, "Unsupported", undefined])
      assert.deepStrictEqual(calls, [["a", "bad", "c"], ["a"], ["bad"], ["c"]])
    })
  )

  it.effect.each([
    ["QueueDoesNotExist", "QueueMissing"],
    ["AccessDenied", "AccessRefused"],
    ["RequestThrottled", "Throttled"]
  ] as const)("that fails as a whole with %s is one call", ([name, reason]) =>
    Effect.gen(function* () {
      const { ask, calls } = sqs(() => {
        throw named(name)
      })
      assert.deepStrictEqual(yield* send(["a", "b"], ask), [reason, reason])
      assert.strictEqual(calls.length, 1)
    })
  )
})

describe("the batcher", () => {
  const make = (parallel: number, answer: (items: ReadonlyArray<number>) => Effect.Effect<BatchCall.Results>) =>
    RequestBatcher.make<number>({
      call: answer,
      sizeOf: (bytes) => bytes,
      parallel,
      fork: (effect) => void Effect.runFork(effect)
    })

  it.effect("what finds no call under way goes at once, what comes meanwhile goes together", () =>
    Effect.gen(function* () {
      const calls: Array<ReadonlyArray<number>> = []
      const gate = yield* Deferred.make<void>()
      const batcher = make(4, (items) => {
        calls.push(items)
        return Effect.as(
          Deferred.await(gate),
          items.map(() => undefined)
        )
      })
      const fibers = yield* Effect.forEach([1, 2, 3], (item) =>
        Effect.forkChild(batcher.submit([item]), { startImmediately: true })
      )
      assert.deepStrictEqual(calls, [[1]])
      const full = yield* Effect.forkChild(batcher.submit([4, 5, 6, 7, 8, 9, 10, 11]), { startImmediately: true })
      assert.deepStrictEqual(calls, [[1], [2, 3, 4, 5, 6, 7, 8, 9, 10, 11]])
      yield* Deferred.succeed(gate, undefined)
      yield* Fiber.joinAll([...fibers, full])
      yield* batcher.idle
    })
  )

  it.effect("a call that takes its time holds up the others for a moment only", () =>
    Effect.gen(function* () {
      const calls: Array<ReadonlyArray<number>> = []
      const fork = Effect.runForkWith(yield* Effect.context())
      const batcher = RequestBatcher.make<number>({
        call: (items) => {
          calls.push(items)
          return calls.length === 1 ? Effect.never : Effect.succeed(items.map(() => undefined))
        },
        sizeOf: () => 1,
        parallel: 2,
        fork: (effect) => void fork(effect)
      })
      yield* Effect.forkChild(batcher.submit([1]), { startImmediately: true })
      const later = yield* Effect.forkChild(batcher.submit([2]), { startImmediately: true })
      yield* TestClock.adjust("30 millis")
      const same = yield* Effect.forkChild(batcher.submit([3]), { startImmediately: true })
      assert.deepStrictEqual(calls, [[1]])
      yield* TestClock.adjust("20 millis")
      assert.deepStrictEqual(calls, [[1], [2, 3]])
      yield* Fiber.joinAll([later, same])
    })
  )

  it("no call has more than ten entries or a mebibyte, calls are bounded, and each item is asked and answered once", async () => {
    const size = fc.integer({ min: 1, max: 400_000 })
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.array(size, { maxLength: 25 }), { maxLength: 8 }),
        fc.integer({ min: 1, max: 3 }),
        async (submits, parallel) => {
          let running = 0
          const seen: Array<number> = []
          const batcher = make(parallel, (items) =>
            Effect.gen(function* () {
              running++
              assert.isAtMost(running, parallel)
              assert.isTrue(items.length >= 1 && items.length <= 10)
              assert.isTrue(items.length === 1 || items.reduce((sum, item) => sum + item, 0) <= 1024 * 1024)
              seen.push(...items)
              yield* Effect.yieldNow
              running--
              return items.map(() => undefined)
            })
          )
          const answers = await Promise.all(submits.map((items) => Effect.runPromise(batcher.submit(items))))
          assert.deepStrictEqual(
            answers.map((each) => each.length),
            submits.map((each) => each.length)
          )
          const order = submits.flat()
          const ordered = (all: ReadonlyArray<number>) => (parallel === 1 ? all : all.toSorted((a, b) => a - b))
          assert.deepStrictEqual(ordered(seen), ordered(order))
        }
      ),
      { numRuns: 50 }
    )
  })
})
