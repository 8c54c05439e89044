import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Scope from "effect/Scope"
import { TestClock } from "effect/testing"
import * as fc from "fast-check"
import * as Timers from "../../src/runtime/Timers.ts"

describe("Timers", () => {
  it.effect("a timer runs once, when it is due and not before", () =>
    Effect.gen(function* () {
      const timers = yield* Timers.make
      const ran: Array<string> = []
      timers.after(100, () => ran.push("a"))
      timers.after(50, () => ran.push("b"))
      yield* TestClock.adjust(49)
      assert.deepStrictEqual(ran, [])
      yield* TestClock.adjust(1)
      assert.deepStrictEqual(ran, ["b"])
      yield* TestClock.adjust(49)
      assert.deepStrictEqual(ran, ["b"])
      yield* TestClock.adjust(1)
      assert.deepStrictEqual(ran, ["b", "a"])
      yield* TestClock.adjust(1000)
      assert.deepStrictEqual(ran, ["b", "a"])
    })
  )

  it.effect("timers that are due together run in the order in which they were set", () =>
    Effect.gen(function* () {
      const timers = yield* Timers.make
      const ran: Array<number> = []
      for (let i = 0; i < 50; i++) timers.after(10, () => ran.push(i))
      yield* TestClock.adjust(10)
      assert.deepStrictEqual(
        ran,
        Array.from({ length: 50 }, (_, i) => i)
      )
    })
  )

  it.effect("a cancelled timer does not run; cancelling again, or what ran, does nothing", () =>
    Effect.gen(function* () {
      const timers = yield* Timers.make
      const ran: Array<string> = []
      const a = timers.after(10, () => ran.push("a"))
      const b = timers.after(20, () => ran.push("b"))
      timers.cancel(a)
      timers.cancel(a)
      timers.cancel(undefined)
      yield* TestClock.adjust(20)
      timers.cancel(b)
      assert.deepStrictEqual(ran, ["b"])
    })
  )

  it.effect("a callback may cancel a timer that is due with it", () =>
    Effect.gen(function* () {
      const timers = yield* Timers.make
      const ran: Array<string> = []
      timers.after(10, () => timers.cancel(late))
      const late = timers.after(10, () => ran.push("late"))
      yield* TestClock.adjust(10)
      assert.deepStrictEqual(ran, [])
    })
  )

  it.effect("a callback may set timers, at once or for later", () =>
    Effect.gen(function* () {
      const timers = yield* Timers.make
      const ran: Array<number> = []
      const tick = () => {
        ran.push(timers.now())
        if (ran.length === 1) timers.after(0, () => ran.push(timers.now()))
        if (ran.length < 5) timers.after(30, tick)
      }
      timers.after(30, tick)
      yield* TestClock.adjust(30)
      assert.deepStrictEqual(ran, [30])
      yield* TestClock.adjust(1000)
      // At once is the next millisecond.
      assert.deepStrictEqual(ran, [30, 31, 60, 90, 120])
    })
  )

  it.effect("callbacks that set each other at once do not stop the clock", () =>
    Effect.gen(function* () {
      const timers = yield* Timers.make
      let ran = 0
      const again = () => {
        ran++
        timers.after(0, again)
      }
      again()
      yield* TestClock.adjust(100)
      assert.isAbove(ran, 50)
      assert.isBelow(ran, 150)
    })
  )

  it.effect("no callback runs when the scope has closed, nor any set later", () =>
    Effect.gen(function* () {
      const scope = yield* Scope.make()
      const timers = yield* Scope.provide(Timers.make, scope)
      const ran: Array<string> = []
      timers.after(10, () => ran.push("a"))
      yield* Scope.close(scope, Exit.void)
      timers.after(10, () => ran.push("b"))
      yield* TestClock.adjust(100)
      assert.deepStrictEqual(ran, [])
    })
  )

  it.effect("a scope that closes inside a callback stops the others that are due", () =>
    Effect.gen(function* () {
      const scope = yield* Scope.make()
      const timers = yield* Scope.provide(Timers.make, scope)
      const ran: Array<string> = []
      timers.after(10, () => Effect.runSync(Scope.close(scope, Exit.void)))
      timers.after(10, () => ran.push("late"))
      yield* TestClock.adjust(100)
      assert.deepStrictEqual(ran, [])
    })
  )

  it("whatever is set and cancelled, each timer runs once, on time, in order", async () => {
    const set = fc.record({ at: fc.nat({ max: 50 }), delay: fc.nat({ max: 50 }), cancelAt: fc.nat({ max: 120 }) })
    const run = (plan: ReadonlyArray<{ readonly at: number; readonly delay: number; readonly cancelAt: number }>) =>
      Effect.gen(function* () {
        const timers = yield* Timers.make
        const ran: Array<readonly [number, number]> = []
        const handles = new Map<number, Timers.Timer>()
        for (let now = 0; now <= 120; now++) {
          plan.forEach(({ at, cancelAt, delay }, i) => {
            if (at === now)
              handles.set(
                i,
                timers.after(delay, () => ran.push([timers.now(), i]))
              )
            if (cancelAt === now && cancelAt >= at) timers.cancel(handles.get(i))
          })
          yield* TestClock.adjust(1)
        }
        // A delay of 0 is waited for as long as the clock takes to move: one millisecond here.
        const due = plan
          .map(({ at, cancelAt, delay }, i) => ({ i, at, due: at + Math.max(1, delay), key: at + delay, cancelAt }))
          .filter(({ at, cancelAt, due }) => cancelAt < at || cancelAt >= due)
          .toSorted((a, b) => a.due - b.due || a.key - b.key || a.at - b.at || a.i - b.i)
        assert.deepStrictEqual(
          ran,
          due.map(({ due, i }) => [due, i] as const)
        )
      }).pipe(Effect.scoped, Effect.provide(TestClock.layer()), Effect.runPromise)
    await fc.assert(fc.asyncProperty(fc.array(set, { maxLength: 30 }), run), { numRuns: 50 })
  })
})
