/** Browsers of a memory broker, and what only this broker can show: cuts, failures and limits in virtual time. */
import { assert, describe, it } from "@effect/vitest"
import { type Broker, RetryPolicy } from "@requeue/core"
import * as Effect from "effect/Effect"
import { TestClock } from "effect/testing"
import { MemoryBroker } from "../src/index.ts"
import { probe, send, text } from "./harness.ts"

const ready: Broker.BrowseOptions = { queue: "q", retry: RetryPolicy.make(), from: "ready", limit: 100 }

const told = (page: ReadonlyArray<Broker.BrowsedMessage>) =>
  page.map(({ delivery }) => `${text(delivery)} ${delivery.attempts}`)

const reason = (next: ReturnType<Broker.Browser["next"]>) => Effect.map(Effect.flip(next), (error) => error.reason)

describe("a browser", () => {
  it.effect(
    "whose connection is lost says so once, and shows again what it has not removed, under the same names",
    () =>
      Effect.gen(function* () {
        const { broker, control } = yield* MemoryBroker.makeControlled()
        yield* send(broker, "q", ["a", "b", "c"])
        const { identify, next, remove } = yield* broker.admin.browse(ready)
        const [a, b] = yield* next(2)
        assert.deepStrictEqual(yield* remove([a!.delivery]), [])
        yield* control.cut
        assert.deepStrictEqual(
          (yield* remove([b!.delivery])).map(({ fate }) => fate),
          ["lost"]
        )
        assert.strictEqual(yield* reason(next(1)), "ConnectionLost")
        const again = yield* next(10)
        assert.deepStrictEqual(told(again), ["b 2", "c 1"])
        assert.strictEqual(identify(again[0]!.delivery), identify(b!.delivery))
      })
  )

  it.effect("shows a message again whose removal was made to fail, and goes on with the others", () =>
    Effect.gen(function* () {
      const broker = yield* MemoryBroker.make({ faults: { failSettle: { every: 2, reason: "LeaseLost" } } })
      yield* send(broker, "q", ["a", "b", "c"])
      const { next, remove } = yield* broker.admin.browse(ready)
      const failures = yield* remove((yield* next(3)).map(({ delivery }) => delivery))
      assert.deepStrictEqual(
        failures.map(({ delivery, fate }) => [text(delivery), fate]),
        [["b", "lost"]]
      )
      assert.deepStrictEqual(told(yield* next(3)), ["b 2"])
    })
  )

  it.effect("makes room for publishers when it removes", () =>
    Effect.gen(function* () {
      const broker = yield* MemoryBroker.make({ maxMessages: 1 })
      yield* send(broker, "q", ["a"])
      yield* Effect.forkChild(send(broker, "q", ["b"]), { startImmediately: true })
      const { next, remove } = yield* broker.admin.browse(ready)
      yield* remove((yield* next(1)).map(({ delivery }) => delivery))
      assert.deepStrictEqual(told(yield* next(1)), ["b 1"])
    })
  )

  it.effect("of a broker that counts has counted what it returns, and no lease of it ends", () =>
    Effect.gen(function* () {
      const lease = { duration: 1000, max: 1000 }
      const broker = yield* MemoryBroker.make({ faults: { lease, capabilities: { uncountedBrowse: false } } })
      yield* send(broker, "q", ["a"])
      const consumer = yield* probe(broker, "q", 1)
      consumer.credit(0)
      yield* send(broker, "q", ["b"])
      yield* Effect.scoped(
        Effect.gen(function* () {
          const { next } = yield* broker.admin.browse(ready)
          assert.deepStrictEqual(told(yield* next(1)), ["b 1"])
          yield* TestClock.adjust("1 hour")
          assert.deepStrictEqual(told(yield* next(1)), ["a 2"])
        })
      )
      consumer.credit(3)
      assert.deepStrictEqual(
        consumer.inbox.map(({ attempts }) => attempts),
        [1, 3, 2]
      )
    })
  )

  it.effect("removes no delayed message that a consumer has had meanwhile, though it waits again", () =>
    Effect.gen(function* () {
      const { broker, control } = yield* MemoryBroker.makeControlled()
      yield* send(broker, "q", ["a"], 1000)
      const { next, remove } = yield* broker.admin.browse({ ...ready, from: "delayed" })
      const [held] = yield* next(1)
      assert.strictEqual(held!.due, 1000)
      const consumer = yield* probe(broker, "q", 1)
      yield* TestClock.adjust(1000)
      yield* consumer.settleOne(consumer.inbox[0]!, { _tag: "Release", delay: 5000 })
      assert.deepStrictEqual(
        (yield* remove([held!.delivery])).map(({ fate }) => fate),
        ["lost"]
      )
      assert.strictEqual((yield* control.snapshot("q")).delayed.length, 1)
      const [again] = yield* next(1)
      assert.strictEqual(again!.due, 6000)
      assert.deepStrictEqual(yield* remove([again!.delivery]), [])
      assert.deepStrictEqual(yield* broker.admin.counts("q"), { ready: 0, inFlight: 0, delayed: 0 })
    })
  )
})
