/** Every probe ends with a signal, whatever becomes of it: no consumer waits for ever, and none tries again at once. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import { TestClock } from "effect/testing"
import * as Consumer from "../../src/consume/Consumer.ts"
import * as ConsumerBackoff from "../../src/policy/ConsumerBackoff.ts"
import * as Puller from "../../src/consume/Puller.ts"
import * as Scripted from "../scripted.ts"

const undecodable = { body: Uint8Array.of(255) }

describe("a probe", () => {
  it.effect("that a puller gives back re-arms the pause", () => {
    const broker = Scripted.make()
    return Effect.gen(function* () {
      const puller = yield* Puller.make("q", { consumerBackoff: ConsumerBackoff.nsq() })
      const pull = Effect.fnUntraced(function* (id: string) {
        const pulling = yield* Effect.forkChild(puller.pull({ wait: "1 hour" }), { startImmediately: true })
        broker.deliver(id)
        yield* TestClock.adjust(1)
        return (yield* Fiber.join(pulling))!
      })
      const first = yield* pull("a")
      first.fail(new Error("no"))
      yield* TestClock.adjust(2000)
      const probe = yield* pull("b")
      probe.release()
      yield* TestClock.adjust(2000)
      const again = yield* pull("c")
      assert.deepStrictEqual(
        again.messages.map(({ id }) => id),
        ["c"]
      )
      again.settle()
    }).pipe(Effect.scoped, Effect.provide(broker.layer))
  })

  it.effect("of the broker that is lost with its lease re-arms the pause, and leaves the next probe to another", () => {
    const broker = Scripted.make()
    return Effect.gen(function* () {
      const runs: Array<string> = []
      yield* Consumer.start("q", {}, (message) => {
        runs.push(message.id)
        if (message.id === "a") message.retry()
      })
      const reasons = ["Throttled", "LeaseLost"] as const
      let asked = 0
      broker.faults.settle = ({ settlement }) => (settlement._tag === "Retry" ? reasons[asked++] : undefined)
      broker.deliver("a")
      yield* TestClock.adjust(2000)
      assert.deepStrictEqual(broker.take(), ["credit 2", "a:Retry", "credit 0", "a:Retry"])
      yield* TestClock.adjust(1999)
      assert.deepStrictEqual(broker.take(), [])
      yield* TestClock.adjust(1)
      assert.deepStrictEqual(broker.take(), ["credit 1"])
      broker.deliver("b")
      yield* Effect.yieldNow
      assert.deepStrictEqual(broker.take(), ["credit 2", "b:Ack"])
      assert.deepStrictEqual(runs, ["a", "b"])
    }).pipe(Effect.scoped, Effect.provide(broker.layer))
  })

  it.effect("of the broker is the settlement that it did not take, alone, and nothing is taken in before", () => {
    const broker = Scripted.make()
    return Effect.gen(function* () {
      yield* Consumer.start("q", { concurrency: 2 }, () => {})
      broker.faults.settle = ({ settlement }) => (settlement._tag === "DeadLetter" ? "Throttled" : undefined)
      broker.deliver("bad", undecodable)
      broker.deliver("worse", undecodable)
      const seen: Array<ReadonlyArray<string>> = []
      for (const pause of [0, 2000, 4000]) {
        yield* TestClock.adjust(pause)
        seen.push(broker.take())
      }
      assert.deepStrictEqual(seen, [
        ["credit 3", "bad:DeadLetter worse:DeadLetter", "credit 0"],
        ["bad:DeadLetter"],
        ["worse:DeadLetter"]
      ])
      broker.faults.settle = () => undefined
      yield* TestClock.adjust(8000)
      assert.deepStrictEqual(broker.take(), ["bad:DeadLetter", "worse:DeadLetter", "credit 3"])
    }).pipe(Effect.scoped, Effect.provide(broker.layer))
  })

  it.effect("of the broker does not wait for a slow handler: the first settlement that is sent is one", () => {
    const broker = Scripted.make()
    return Effect.gen(function* () {
      yield* Consumer.start("q", { concurrency: 3, drainTimeout: 0 }, ({ id }) =>
        id === "slow" ? Effect.sleep("9 minutes") : Effect.void
      )
      broker.deliver("slow")
      broker.faults.settle = () => ({ reason: "Throttled", fate: "transient" })
      broker.deliver("a")
      yield* Effect.yieldNow
      broker.faults.settle = () => undefined
      broker.take()
      yield* TestClock.adjust(2000)
      assert.deepStrictEqual(broker.take(), ["a:Ack", "credit 4"])
    }).pipe(Effect.scoped, Effect.provide(broker.layer))
  })

  it.effect("of the broker is left to the next message while the handler of the first one is slow", () => {
    const broker = Scripted.make()
    return Effect.gen(function* () {
      const runs: Array<string> = []
      yield* Consumer.start("q", { concurrency: 3, drainTimeout: 0 }, (message) => {
        runs.push(message.id)
        if (message.id === "a") message.retry()
        return message.id === "slow" ? Effect.sleep("9 minutes") : Effect.void
      })
      const reasons = ["Throttled", "LeaseLost"] as const
      let asked = 0
      broker.faults.settle = ({ settlement }) => (settlement._tag === "Retry" ? reasons[asked++] : undefined)
      broker.deliver("a")
      yield* TestClock.adjust(4000)
      assert.strictEqual(broker.take().at(-1), "credit 1")
      broker.deliver("slow")
      yield* TestClock.adjust(1)
      assert.deepStrictEqual(broker.take(), ["credit 2"])
      broker.deliver("b")
      yield* Effect.yieldNow
      assert.deepStrictEqual(
        [runs, broker.take().slice(-2)],
        [
          ["a", "slow", "b"],
          ["b:Ack", "credit 4"]
        ]
      )
    }).pipe(Effect.scoped, Effect.provide(broker.layer))
  })

  it.effect("of the handler does not wait for handlers that run already", () => {
    const broker = Scripted.make()
    return Effect.gen(function* () {
      const runs: Array<string> = []
      yield* Consumer.start(
        "q",
        { concurrency: 3, drainTimeout: 0, consumerBackoff: ConsumerBackoff.nsq() },
        ({ id }) => {
          runs.push(id)
          return id === "slow" ? Effect.never : id === "bad" ? Effect.fail("no") : Effect.void
        }
      )
      for (const id of ["slow", "bad"]) broker.deliver(id)
      yield* TestClock.adjust(2000)
      assert.deepStrictEqual(broker.take(), ["credit 4", "credit 0", "bad:Retry", "credit 2"])
      broker.deliver("probe")
      yield* Effect.yieldNow
      assert.deepStrictEqual(
        [runs, broker.take()],
        [
          ["slow", "bad", "probe"],
          ["credit 4", "probe:Ack"]
        ]
      )
    }).pipe(Effect.scoped, Effect.provide(broker.layer))
  })

  it.effect(
    "of the handler that is slow lets no other message come beside it, however long its lease is extended",
    () => {
      const broker = Scripted.make({ lease: { duration: 3000, max: Number.POSITIVE_INFINITY } })
      return Effect.gen(function* () {
        yield* Consumer.start(
          "q",
          { concurrency: 3, drainTimeout: 0, consumerBackoff: ConsumerBackoff.nsq() },
          ({ id }) => (id === "bad" ? Effect.fail("no") : Effect.sleep(1500))
        )
        broker.deliver("bad")
        yield* TestClock.adjust(2000)
        assert.deepStrictEqual(broker.take(), ["credit 4", "credit 0", "bad:Retry", "credit 1"])
        broker.deliver("probe")
        yield* TestClock.adjust(1499)
        assert.deepStrictEqual(broker.take(), ["extend probe", "credit 0"])
        yield* TestClock.adjust(1)
        assert.deepStrictEqual(broker.take(), ["credit 4", "probe:Ack"])
      }).pipe(Effect.scoped, Effect.provide(broker.layer))
    }
  )
})
