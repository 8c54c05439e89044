import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { TestClock } from "effect/testing"
import type { Context } from "../../src/message/Handler.ts"
import { boom, Failed, Interrupted, settled, start, Succeeded } from "./dispatch.harness.ts"

const fails = () => {
  throw boom
}

// oxlint-disable-next-line unicorn/no-thenable -- that is what it is for
const thenable = (then: PropertyDescriptor) => Object.defineProperties({}, { then })

describe("a handler that ends at once", () => {
  const cases: ReadonlyArray<readonly [string, () => unknown, object]> = [
    ["nothing", () => undefined, Succeeded],
    ["a value", () => 5, Succeeded],
    ["null", () => null, Succeeded],
    ["an Effect", () => Effect.succeed(5), Succeeded],
    ["a failed Effect", () => Effect.fail(boom), Failed(boom)],
    ["a defect", () => Effect.die(boom), Failed(boom)],
    [
      "an Effect that fails after a while of its own",
      () => Effect.andThen(Effect.yieldNow, Effect.fail(boom)),
      Failed(boom)
    ],
    ["a promise", () => Promise.resolve(5), Succeeded],
    ["a rejected promise", () => Promise.reject(boom), Failed(boom)],
    ["any thenable", () => thenable({ value: (done: () => void) => done() }), Succeeded],
    ["a thenable that throws", () => thenable({ value: fails }), Failed(boom)],
    ["a thenable that cannot be asked", () => thenable({ get: fails }), Failed(boom)]
  ]
  it.effect.each(cases)("%s", ([, handler, expected]) =>
    Effect.gen(function* () {
      const { outcomes, run } = yield* start(handler, 1000)
      yield* settled
      yield* Effect.yieldNow
      assert.deepStrictEqual<unknown>(outcomes, [expected])
      run.interrupt()
      yield* TestClock.adjust(5000)
      assert.lengthOf(outcomes, 1)
    })
  )

  it.effect("one that throws", () =>
    Effect.gen(function* () {
      const { outcomes } = yield* start(() => {
        throw boom
      })
      assert.deepStrictEqual<unknown>(outcomes, [Failed(boom)])
    })
  )

  it.effect("an Effect that interrupts itself has failed", () =>
    Effect.gen(function* () {
      const { outcomes } = yield* start(() => Effect.interrupt)
      assert.strictEqual(outcomes[0]?._tag, "Failed")
    })
  )
})

describe("interrupt", () => {
  it.effect("ends a promise at once, and only once", () =>
    Effect.gen(function* () {
      let context: Context | undefined
      const { outcomes, run } = yield* start((given) => {
        context = given
        return new Promise(() => {})
      }, 1000)
      assert.isFalse(context!.signal.aborted)
      run.interrupt()
      run.interrupt()
      yield* TestClock.adjust(1000)
      assert.deepStrictEqual<unknown>(outcomes, [Interrupted])
      assert.isTrue(context!.signal.aborted)
    })
  )

  it.effect("ends an Effect when its finalizers have run", () =>
    Effect.gen(function* () {
      const slow = Effect.onInterrupt(Effect.never, () => Effect.sleep(200))
      const { outcomes, run } = yield* start(() => slow, 1000)
      yield* settled
      run.interrupt()
      assert.lengthOf(outcomes, 0)
      // Its time is over while it is being interrupted: that changes nothing.
      yield* TestClock.adjust(2000)
      assert.deepStrictEqual<unknown>(outcomes, [Interrupted])
    })
  )

  it.effect("does nothing after the end", () =>
    Effect.gen(function* () {
      const { outcomes, run } = yield* start(() => Effect.sleep(10))
      yield* TestClock.adjust(10)
      run.interrupt()
      assert.deepStrictEqual<unknown>(outcomes, [Succeeded])
    })
  )

  it.effect("an Effect that fails while it is interrupted has failed", () =>
    Effect.gen(function* () {
      const failing = Effect.onInterrupt(Effect.never, () => Effect.die(boom))
      const { outcomes, run } = yield* start(() => failing)
      run.interrupt()
      yield* settled
      assert.strictEqual(outcomes[0]?._tag, "Failed")
      assert.deepStrictEqual<unknown>(outcomes, [Failed(boom)])
    })
  )
})
