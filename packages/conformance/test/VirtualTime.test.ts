import { assert, describe, it } from "@effect/vitest"
import * as Clock from "effect/Clock"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Random from "effect/Random"
import * as VirtualTime from "../src/VirtualTime.ts"

describe("VirtualTime.run", () => {
  it.live("lets days pass in no time, in order", () =>
    Effect.gen(function* () {
      const order: Array<string> = []
      const note = (text: string, after: number) =>
        Effect.andThen(
          Effect.sleep(after),
          Effect.sync(() => order.push(text))
        )
      const elapsed = yield* VirtualTime.run(
        Effect.gen(function* () {
          assert.strictEqual(yield* Clock.currentTimeMillis, VirtualTime.epoch)
          yield* Effect.all([note("c", 86_400_000), note("a", 10), note("b", 500)], { concurrency: "unbounded" })
          return (yield* Clock.currentTimeMillis) - VirtualTime.epoch
        })
      )
      assert.strictEqual(elapsed, 86_400_000)
      assert.deepStrictEqual(order, ["a", "b", "c"])
    })
  )

  it.live("lets promises go on before the clock does", () =>
    Effect.gen(function* () {
      const winner = yield* VirtualTime.run(
        Effect.raceFirst(
          Effect.as(
            Effect.promise(() => Promise.resolve().then(() => Promise.resolve())),
            "promise"
          ),
          Effect.as(Effect.sleep(1), "clock")
        )
      )
      assert.strictEqual(winner, "promise")
    })
  )

  it.live("wakes each sleeper at its own time, also those that begin to sleep on the way", () =>
    Effect.gen(function* () {
      const seen: Array<number> = []
      yield* VirtualTime.run(
        Effect.gen(function* () {
          for (const step of [3, 0.5, 7]) {
            yield* Effect.sleep(step)
            seen.push((yield* Clock.currentTimeMillis) - VirtualTime.epoch)
          }
        })
      )
      assert.deepStrictEqual(seen, [3, 3.5, 10.5])
    })
  )

  it.live("hands on failures, and interrupts what timed out", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(yield* Effect.exit(VirtualTime.run(Effect.fail("no"))), Exit.fail("no"))
      const late = Effect.timeoutOrElse(Effect.never, { duration: "1 hour", orElse: () => Effect.succeed("late") })
      assert.strictEqual(yield* VirtualTime.run(late), "late")
    })
  )

  it.live("says so when the program waits for what never comes", () =>
    Effect.gen(function* () {
      const exit = yield* Effect.exit(VirtualTime.run(Effect.flatMap(Deferred.make<void>(), Deferred.await)))
      assert.include(String(Exit.isFailure(exit) && exit.cause), "waits for something other than the clock")
    })
  )

  it.live("draws the same random numbers each time, and others with a seed", () =>
    Effect.gen(function* () {
      const draws = Effect.all([Random.next, Random.next])
      const first = yield* VirtualTime.run(draws)
      assert.notStrictEqual(first[0], first[1])
      assert.deepStrictEqual(yield* VirtualTime.run(draws), first)
      assert.notDeepEqual(yield* VirtualTime.run(Random.withSeed(draws, "another")), first)
    })
  )
})
