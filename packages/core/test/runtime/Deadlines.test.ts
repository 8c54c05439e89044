import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { TestClock } from "effect/testing"
import * as Deadlines from "../../src/runtime/Deadlines.ts"
import * as Timers from "../../src/runtime/Timers.ts"

const start = Effect.fnUntraced(function* (timeout: number) {
  const timers = yield* Timers.make
  const passed: Array<string> = []
  const deadlines = Deadlines.make(timers, timeout)
  const begin = (name: string) => {
    const started = Deadlines.deadline(() => passed.push(name))
    deadlines.start(started)
    return started
  }
  return { deadlines, passed, begin }
})

describe("deadlines", () => {
  it.effect("pass one by one, each after its own time, and not those that were ended", () =>
    Effect.gen(function* () {
      const { begin, deadlines, passed } = yield* start(100)
      begin("a")
      yield* TestClock.adjust(30)
      const b = begin("b")
      yield* TestClock.adjust(0.5)
      begin("c")
      deadlines.end(b)
      yield* TestClock.adjust(69)
      assert.deepStrictEqual(passed, [])
      yield* TestClock.adjust(0.5)
      assert.deepStrictEqual(passed, ["a"])
      yield* TestClock.adjust(30)
      assert.deepStrictEqual(passed, ["a"])
      yield* TestClock.adjust(1)
      assert.deepStrictEqual(passed, ["a", "c"])
      begin("d")
      yield* TestClock.adjust(100)
      assert.deepStrictEqual(passed, ["a", "c", "d"])
    })
  )

  it.effect("may be started and ended by one that passes", () =>
    Effect.gen(function* () {
      const { begin, deadlines, passed } = yield* start(100)
      const a = Deadlines.deadline(() => {
        deadlines.end(b)
        begin("c")
      })
      deadlines.start(a)
      const b = begin("b")
      yield* TestClock.adjust(100)
      assert.deepStrictEqual(passed, [])
      yield* TestClock.adjust(100)
      assert.deepStrictEqual(passed, ["c"])
    })
  )
})
