/**
 * Jitters: a jitter spreads delays at random, so that messages that failed together do not come back together.
 *
 * A jitter is data; {@link apply} is a pure function that takes the random number as an argument.
 */

/**
 * How delays are spread.
 *
 * - `none`: the delay itself.
 * - `full`: from 0 to the delay. This spreads best, but a retry may come at once.
 * - `equal`: from half the delay to the delay.
 * - `decorrelated`: from the first delay to three times the previous one, whatever the backoff's own growth.
 * - `{ proportional: p }`: the delay plus or minus the share `p` (0 to 1) of it.
 *
 * The formulas of full, equal and decorrelated jitter are those of
 * https://aws.amazon.com/blogs/architecture/exponential-backoff-and-jitter/. There, decorrelated jitter uses the previous
 * delay that was drawn; here it uses the previous delay before jitter, since messages do not carry the one drawn.
 */
export type Jitter = "none" | "full" | "equal" | "decorrelated" | { readonly proportional: number }

/** The delays of a backoff before jitter, in milliseconds. */
export interface Base {
  /** The delay of this attempt. */
  readonly delay: number
  /** The delay of the first attempt. */
  readonly first: number
  /** The delay of the attempt before this one. */
  readonly previous: number
}

/**
 * Checks a jitter, and returns it.
 *
 * @throws RangeError when the share of a proportional jitter is not within 0 to 1, or the name is unknown
 */
export const make = (jitter: Jitter): Jitter => {
  if (typeof jitter === "object") {
    if (jitter.proportional >= 0 && jitter.proportional <= 1) return jitter
    throw new RangeError(`Jitter.make: proportional must be within 0 to 1, got ${jitter.proportional}`)
  }
  if (["none", "full", "equal", "decorrelated"].includes(jitter)) return jitter
  throw new RangeError(
    `Jitter.make: must be none, full, equal, decorrelated or { proportional }, got ${String(jitter)}`
  )
}

/**
 * The jittered delay, in milliseconds; `random` is from 0 (inclusive) to 1 (exclusive).
 *
 * @example
 * ```ts
 * import { Jitter } from "@requeue/core"
 *
 * Jitter.apply("equal", { delay: 1000, first: 1000, previous: 1000 }, 0.5) // => 750
 * ```
 */
export const apply = (jitter: Jitter, base: Base, random: number): number => {
  switch (jitter) {
    case "none":
      return base.delay
    case "full":
      return random * base.delay
    case "equal":
      return base.delay / 2 + random * (base.delay / 2)
    case "decorrelated":
      return base.first + random * Math.max(0, 3 * base.previous - base.first)
    default:
      return base.delay + (2 * random - 1) * (jitter.proportional * base.delay)
  }
}

/** The shortest and the longest delay that {@link apply} can return, in milliseconds. */
export const range = (jitter: Jitter, base: Base): readonly [number, number] => [
  apply(jitter, base, 0),
  apply(jitter, base, 1)
]
