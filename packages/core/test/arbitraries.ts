/** Generated policies, for the laws that hold for all of them. */
import * as fc from "fast-check"
import * as Backoff from "../src/policy/Backoff.ts"
import * as Delay from "../src/message/Delay.ts"
import type * as Jitter from "../src/policy/Jitter.ts"

/** Milliseconds: the small ones where rounding shows, and the whole range. */
export const millis = fc.oneof(fc.integer({ min: 0, max: 20 }), fc.integer({ min: 0, max: Delay.max }))

const positive = fc.oneof(fc.integer({ min: 1, max: 20 }), fc.integer({ min: 1, max: Delay.max }))

/** From 0 (inclusive) to 1 (exclusive). */
export const random = fc.oneof(
  fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }),
  fc.constantFrom(0, 0.5, 1 - Number.EPSILON / 2)
)

export const attempts = fc.oneof(fc.integer({ min: 1, max: 12 }), fc.integer({ min: 1, max: 1_000_000 }))

export const jitter: fc.Arbitrary<Jitter.Jitter> = fc.oneof(
  fc.constantFrom("none", "full", "equal", "decorrelated"),
  fc.record({ proportional: fc.double({ min: 0, max: 1, noNaN: true }) }),
  fc.integer({ min: 0, max: 100 }).map((percent) => ({ proportional: percent / 100 }))
)

const factor = fc.oneof(fc.constantFrom(1, 1.5, 2, 10, 1e300), fc.double({ min: 1, max: 4, noNaN: true }))

/** A cap below the shortest delay is refused. */
const atLeast = (least: number, { max, ...others }: Backoff.Options): Backoff.Options => ({
  ...others,
  ...(typeof max === "number" ? { max: Math.max(max, least) } : {})
})

const exponential = (base: number, factor: number, options: Backoff.Options): Backoff.Backoff =>
  Backoff.exponential(base, { factor, ...atLeast(base, options) })

const options: fc.Arbitrary<Backoff.Options> = fc.record({ max: millis, jitter }, { requiredKeys: [] })

/** Any backoff but a switch. */
const simple: fc.Arbitrary<Backoff.Backoff> = fc.oneof(
  fc.tuple(millis, options).map(([delay, options]) => Backoff.constant(delay, atLeast(delay, options))),
  fc.tuple(millis, options).map(([step, options]) => Backoff.linear(step, atLeast(step, options))),
  fc.tuple(positive, factor, options).map(([base, factor, options]) => exponential(base, factor, options)),
  fc
    .tuple(fc.array(millis, { minLength: 1, maxLength: 8 }), options)
    .map(([delays, o]) => Backoff.sequence(delays, atLeast(Math.min(...delays), o)))
)

/** Any backoff, with switches and caps inside each other. */
export const backoff: fc.Arbitrary<Backoff.Backoff> = fc.letrec<{ backoff: Backoff.Backoff }>((tie) => ({
  backoff: fc.oneof(
    { maxDepth: 3 },
    simple,
    fc
      .tuple(fc.integer({ min: 1, max: 10 }), tie("backoff"), tie("backoff"))
      .map(([after, first, next]) => Backoff.switchAfter(after, first, next)),
    fc.tuple(tie("backoff"), millis).map(([self, max]) => Backoff.capped(self, max))
  )
})).backoff
