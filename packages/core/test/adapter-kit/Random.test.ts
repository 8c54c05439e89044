import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as EffectRandom from "effect/Random"
import * as Random from "../../src/adapter-kit/Random.ts"

const some = (next: Effect.Effect<number>) => Effect.all(Array.from({ length: 20 }, () => next))

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
})
