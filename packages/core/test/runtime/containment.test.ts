import { assert, describe, it } from "@effect/vitest"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Logger from "effect/Logger"
import { TestClock } from "effect/testing"
import * as Deadlines from "../../src/runtime/Deadlines.ts"
import * as Timers from "../../src/runtime/Timers.ts"

const boom = new Error("boom")
const throws =
  (defect: unknown = boom) =>
  () => {
    throw defect
  }

/** Runs with a logger that only keeps the causes of what is logged. */
const logged = <A, E, R>(run: (causes: ReadonlyArray<unknown>) => Effect.Effect<A, E, R>) => {
  const causes: Array<unknown> = []
  const keep = Logger.make(({ cause }) => void causes.push(Cause.squash(cause)))
  return Effect.provide(run(causes), Logger.layer([keep]))
}

describe("a callback that throws", () => {
  it.effect("stops no timer that is due with it, nor one that comes later, and is logged", () =>
    logged((causes) =>
      Effect.gen(function* () {
        const timers = yield* Timers.make
        const ran: Array<string> = []
        timers.after(10, () => ran.push("before"))
        timers.after(10, throws())
        timers.after(10, throws(null))
        timers.after(10, () => ran.push("after"))
        timers.after(20, () => ran.push("later"))
        yield* TestClock.adjust(10)
        assert.deepStrictEqual(ran, ["before", "after"])
        assert.deepStrictEqual(causes, [boom, null])
        yield* TestClock.adjust(10)
        timers.after(10, () => ran.push("new"))
        yield* TestClock.adjust(10)
        assert.deepStrictEqual(ran, ["before", "after", "later", "new"])
      })
    )
  )

  it.effect("stops no deadline that passes with it, nor one that comes later, and is logged", () =>
    logged((causes) =>
      Effect.gen(function* () {
        const timers = yield* Timers.make
        const deadlines = Deadlines.make(timers, 100)
        const passed: Array<string> = []
        const begin = (name: string) => deadlines.start(Deadlines.deadline(() => passed.push(name)))
        begin("before")
        deadlines.start(Deadlines.deadline(throws()))
        begin("after")
        yield* TestClock.adjust(50)
        begin("later")
        yield* TestClock.adjust(50)
        assert.deepStrictEqual(passed.toSorted(), ["after", "before"])
        assert.deepStrictEqual(causes, [boom])
        yield* TestClock.adjust(50)
        begin("new")
        yield* TestClock.adjust(100)
        assert.deepStrictEqual(passed.slice(2), ["later", "new"])
      })
    )
  )
})
