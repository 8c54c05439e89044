/** Effect's source of random numbers, by its key: `effect/Random` would load unused modules, 5 % of our import time. */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type * as EffectRandom from "effect/Random"

/** Effect's random service. A program replaces it with `Random.withSeed`, or with another implementation. */
export const source: typeof EffectRandom.Random = Context.Reference("effect/Random", {
  // Same as Effect's default: the first to name the source defines it.
  // oxlint-disable no-restricted-properties
  defaultValue: () => ({
    nextIntUnsafe: () => Math.floor(2 ** 53 * (2 * Math.random() - 1)),
    nextDoubleUnsafe: Math.random
  })
  // oxlint-enable no-restricted-properties
})

/** Returns a number from 0 to below 1; 0.5 if the source throws or returns anything else. */
export const draw = (from: EffectRandom.Random): number => {
  try {
    const number: unknown = from.nextDoubleUnsafe()
    return typeof number === "number" && number >= 0 && number < 1 ? number : 0.5
  } catch {
    return 0.5
  }
}

/** An effect that returns a random number from 0 to below 1. */
export const next: Effect.Effect<number> = Effect.map(source, draw)

/** Shuffles a list, as `Random.shuffle` of Effect does with the same numbers. */
export const shuffle = <A>(list: ReadonlyArray<A>): Effect.Effect<Array<A>> =>
  Effect.map(source, (random) => {
    const order = [...list]
    for (let last = order.length - 1; last > 0; last--) {
      const other = Math.floor(draw(random) * (last + 1))
      ;[order[last], order[other]] = [order[other]!, order[last]!]
    }
    return order
  })
