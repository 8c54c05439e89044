import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { TestClock } from "effect/testing"
import { HandlerTimeout } from "../../src/policy/Failure.ts"
import type { Context } from "../../src/message/Handler.ts"
import { boom, Failed, isTimeout, settled, start } from "./dispatch.harness.ts"

describe("the time of a handler", () => {
  it.effect("an Effect is interrupted, and its finalizers are awaited", () =>
    Effect.gen(function* () {
      let released = false
      const slow = Effect.onInterrupt(Effect.never, () =>
        Effect.andThen(
          Effect.sleep(200),
          Effect.sync(() => {
            released = true
          })
        )
      )
      const { outcomes } = yield* start(() => slow, 1000)
      yield* TestClock.adjust(999)
      assert.lengthOf(outcomes, 0)
      yield* TestClock.adjust(1)
      assert.deepStrictEqual([outcomes.length, released], [0, false])
      yield* TestClock.adjust(200)
      assert.isTrue(released)
      isTimeout(outcomes, 1000)
    })
  )

  it.effect("an Effect that cannot be interrupted is waited for", () =>
    Effect.gen(function* () {
      const { outcomes } = yield* start(() => Effect.uninterruptible(Effect.sleep(1500)), 1000)
      yield* TestClock.adjust(1499)
      assert.lengthOf(outcomes, 0)
      yield* TestClock.adjust(1)
      isTimeout(outcomes, 1000)
    })
  )

  it.effect("a finalizer that fails is the failure", () =>
    Effect.gen(function* () {
      const { outcomes } = yield* start(() => Effect.onInterrupt(Effect.never, () => Effect.die(boom)), 1000)
      yield* TestClock.adjust(1000)
      assert.deepStrictEqual<unknown>(outcomes, [Failed(boom)])
    })
  )

  it.effect("a promise is told by its signal, and not waited for", () =>
    Effect.gen(function* () {
      let reason: unknown
      const { outcomes } = yield* start(({ signal }) => {
        signal.addEventListener("abort", () => (reason = signal.reason))
        return new Promise(() => {})
      }, 1000)
      yield* TestClock.adjust(1000)
      isTimeout(outcomes, 1000)
      assert.instanceOf(reason, HandlerTimeout)
    })
  )

  it.effect("what a promise does after its time is ignored", () =>
    Effect.gen(function* () {
      const [late, later] = [Promise.withResolvers(), Promise.withResolvers()]
      const one = yield* start(() => late.promise, 1000)
      const two = yield* start(() => later.promise, 1000)
      yield* TestClock.adjust(1000)
      late.resolve(5)
      later.reject(boom)
      yield* settled
      isTimeout(one.outcomes, 1000)
      isTimeout(two.outcomes, 1000)
    })
  )

  it.effect("a signal that is asked for after the abort is aborted", () =>
    Effect.gen(function* () {
      let context: Context | undefined
      yield* start((given) => {
        context = given
        return new Promise(() => {})
      }, 1000)
      yield* TestClock.adjust(1000)
      assert.isTrue(context!.signal.aborted)
      assert.instanceOf(context!.signal.reason, HandlerTimeout)
      assert.strictEqual(context!.signal, context!.signal)
    })
  )
})
