import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as EffectRandom from "effect/Random"
import * as fc from "fast-check"
import * as Random from "../../src/runtime/Random.ts"
import * as Consumer from "../../src/consume/Consumer.ts"
import type { Event } from "../../src/observe/Event.ts"
import * as Backoff from "../../src/policy/Backoff.ts"
import * as RetryPolicy from "../../src/policy/RetryPolicy.ts"
import * as Scripted from "../scripted.ts"

const some = (next: Effect.Effect<number>) => Effect.all(Array.from({ length: 20 }, () => next))

const throwing = (): never => {
  throw new Error("no entropy")
}

/** What a source of a program's own may do. */
const answers = fc.oneof(
  fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }).map((number) => () => number),
  fc.oneof(fc.double(), fc.anything()).map((answer) => (): any => answer), // It need not keep to its type.
  fc.constant(throwing)
)

const sourceOf = (nextDoubleUnsafe: () => number) => ({ nextDoubleUnsafe, nextIntUnsafe: () => 1 })

describe("random numbers", () => {
  it.effect("are those of Effect's source, whichever a program has", () =>
    Effect.gen(function* () {
      const seeded = (next: Effect.Effect<number>) => EffectRandom.withSeed(some(next), "a seed")
      assert.deepStrictEqual(yield* seeded(Random.next), yield* seeded(EffectRandom.next))
      const shuffled = (shuffle: typeof Random.shuffle) =>
        Effect.all(Array.from({ length: 20 }, (_, length) => shuffle(Array.from({ length }, (_, index) => index))))
      assert.deepStrictEqual(
        yield* EffectRandom.withSeed(shuffled(Random.shuffle), "a seed"),
        yield* EffectRandom.withSeed(shuffled(EffectRandom.shuffle), "a seed")
      )
      const fixed = { nextIntUnsafe: () => 1, nextDoubleUnsafe: () => 0.25 }
      assert.strictEqual(yield* Effect.provideService(Random.next, EffectRandom.Random, fixed), 0.25)
    })
  )

  it.effect("are from 0 to below 1, integers safe, where it has none of its own", () =>
    Effect.gen(function* () {
      const numbers = yield* some(Random.next)
      assert.isTrue(numbers.every((number) => number >= 0 && number < 1))
      assert.isAbove(new Set(numbers).size, 1)
      const source = yield* Random.source
      assert.isTrue(Number.isSafeInteger(source.nextIntUnsafe()))
    })
  )

  it("are from 0 to below 1, whatever a program's own source does", () =>
    fc.assert(
      fc.property(answers, (answer) => {
        const source = Effect.provideService(Random.next, EffectRandom.Random, sourceOf(answer))
        const number: unknown = Effect.runSync(source)
        assert.isTrue(typeof number === "number" && number >= 0 && number < 1, String(number))
      })
    ))

  it.effect.each([() => Number.NaN, () => -5, () => 1e9])("keep a delay within its bounds: %s", (answer) => {
    const broker = Scripted.make()
    const delays: Array<unknown> = []
    const onEvent = (event: Event) => void (event._tag === "RetryScheduled" && delays.push(event.delay))
    const retry = RetryPolicy.make({ backoff: Backoff.constant("100 millis", { jitter: "full" }) })
    return Effect.gen(function* () {
      yield* Consumer.start("q", { onEvent, retry }, () => Effect.fail(new Error("no")))
      broker.deliver("a")
      yield* Effect.yieldNow
      assert.deepStrictEqual(delays, [50])
    }).pipe(Effect.scoped, Effect.provide(broker.layer), Effect.provideService(EffectRandom.Random, sourceOf(answer)))
  })
})
