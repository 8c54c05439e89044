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
      const puller = yield* Puller.make("q", { consumerBackoff: ConsumerBackoff.make() })
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

  it.effect("of the broker that loses its lease re-arms the pause", () => {
    const broker = Scripted.make()
    return Effect.gen(function* () {
      const runs: Array<string> = []
      yield* Consumer.start("q", {}, (message) => {
        runs.push(message.id)
        if (message.id === "a") message.retry()
      })
      broker.faults.settle = ({ delivery, settlement }) =>
        delivery.metadata.id === "b" ? "LeaseLost" : settlement._tag === "Retry" ? "Throttled" : undefined
      broker.deliver("a")
      yield* TestClock.adjust(2000)
      broker.deliver("b")
      yield* TestClock.adjust(2000)
      broker.deliver("c")
      yield* TestClock.adjust(1)
      assert.deepStrictEqual(runs, ["a", "b", "c"])
    }).pipe(Effect.scoped, Effect.provide(broker.layer))
  })

  it.effect("of the broker may be a message that no handler sees: one that fails to settle pauses again", () => {
    const broker = Scripted.make()
    return Effect.gen(function* () {
      yield* Consumer.start("q", {}, () => {})
      broker.faults.settle = ({ settlement }) => (settlement._tag === "DeadLetter" ? "Throttled" : undefined)
      const seen: Array<ReadonlyArray<string>> = []
      for (const pause of [0, 2000, 4000]) {
        yield* TestClock.adjust(pause)
        const before = broker.take()
        broker.deliver("bad", undecodable)
        yield* Effect.yieldNow
        seen.push([...before, "then", ...broker.take()])
      }
      const failed = ["then", "bad:DeadLetter", "credit 0", "bad:Release"]
      assert.deepStrictEqual(seen, [
        ["credit 2", ...failed],
        ["credit 1", ...failed],
        ["credit 1", ...failed]
      ])
      broker.faults.settle = () => undefined
      yield* TestClock.adjust(8000)
      broker.deliver("bad", undecodable)
      yield* Effect.yieldNow
      assert.deepStrictEqual(broker.take(), ["credit 1", "bad:DeadLetter", "credit 2"])
    }).pipe(Effect.scoped, Effect.provide(broker.layer))
  })
})
