/**
 * Effect's source of random numbers, by its key. `effect/Random` has more, and loads the modules of ids and of cryptography
 * with it, which nobody here needs: they take a twentieth of the time that a program's import of this package takes.
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type * as EffectRandom from "effect/Random"

/** The service that `Random.withSeed` and a program's own source replace. */
export const source: typeof EffectRandom.Random = Context.Reference("effect/Random", {
  // What Effect's own default is: it is the same source, whoever names it first.
  // oxlint-disable no-restricted-properties
  defaultValue: () => ({
    nextIntUnsafe: () => Math.floor(2 ** 53 * (2 * Math.random() - 1)),
    nextDoubleUnsafe: Math.random
  })
  // oxlint-enable no-restricted-properties
})

/** A number from 0 to below 1, whatever the source does: the middle where it throws, or answers anything else. */
export const draw = (from: EffectRandom.Random): number => {
  try {
    const number: unknown = from.nextDoubleUnsafe()
    return typeof number === "number" && number >= 0 && number < 1 ? number : 0.5
  } catch {
    return 0.5
  }
}

/** A number from 0 to below 1. */
export const next: Effect.Effect<number> = Effect.map(source, draw)

/** A list in random order: the one that `Random.shuffle` of Effect makes of the same numbers. */
export const shuffle = <A>(list: ReadonlyArray<A>): Effect.Effect<Array<A>> =>
  Effect.map(source, (random) => {
    const order = [...list]
    for (let last = order.length - 1; last > 0; last--) {
      const other = Math.floor(draw(random) * (last + 1))
      ;[order[last], order[other]] = [order[other]!, order[last]!]
    }
    return order
  })
