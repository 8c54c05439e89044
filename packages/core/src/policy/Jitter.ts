/**
 * Jitters: a jitter spreads delays at random, so that messages that failed together do not come back together.
 *
 * A jitter is data, and {@link range} a pure function of it; a delay is drawn from that range with equal chances. The cap
 * limits the range, not the delay that was drawn: else the delays of late attempts would lie on the cap, most of them at
 * the same moment.
 */
import * as OptionKind from "../options/OptionKind.ts"
import * as OptionNames from "../options/OptionNames.ts"

/**
 * How delays are spread.
 *
 * - `none`: the delay itself.
 * - `full`: from 0 to the delay. This spreads best, but a retry may come at once.
 * - `equal`: from half the delay to the delay.
 * - `decorrelated`: from the first delay to three times the previous one, whatever the backoff's own growth.
 * - `{ proportional: p }`: the delay plus or minus the share `p` (0 to 1) of it. Once the delay has reached the cap, only
 *   minus is left.
 *
 * Delays are capped first, and no range goes beyond the cap. The formulas of full and equal jitter are those of
 * https://aws.amazon.com/blogs/architecture/exponential-backoff-and-jitter/, for example `random_between(0, min(cap,
 * base * 2 ** attempt))`. That of decorrelated jitter, `min(cap, random_between(base, sleep * 3))`, is changed in two ways:
 * the cap limits what is drawn from, and `sleep` is the previous delay before jitter, since messages do not carry the one
 * that was drawn.
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
  if (OptionKind.isObject(jitter)) {
    OptionNames.check("Jitter.make", jitter, { proportional: true })
    if (jitter.proportional >= 0 && jitter.proportional <= 1) return jitter
    throw new RangeError(`Jitter.make: proportional must be within 0 to 1, got ${jitter.proportional}`)
  }
  if (["none", "full", "equal", "decorrelated"].includes(jitter)) return jitter
  throw new RangeError(
    `Jitter.make: must be none, full, equal, decorrelated or { proportional }, got ${String(jitter)}`
  )
}

/**
 * The shortest and the longest delay after jitter, in milliseconds. `max` is the cap, which the delays of the base keep.
 *
 * @example
 * ```ts
 * import { Jitter } from "@requeue/core"
 *
 * const base = { delay: 1000, first: 1000, previous: 1000 }
 * Jitter.range("equal", base, 60_000) // => [500, 1000]
 * Jitter.range({ proportional: 0.1 }, base, 1000) // => [900, 1000]
 * ```
 */
export const range = (jitter: Jitter, base: Base, max: number): readonly [number, number] => {
  const { delay, first, previous } = base
  switch (jitter) {
    case "none":
      return [delay, delay]
    case "full":
      return [0, delay]
    case "equal":
      return [delay / 2, delay]
    case "decorrelated":
      return [first, Math.min(Math.max(first, 3 * previous), max)]
    default:
      return [delay - jitter.proportional * delay, Math.min(delay + jitter.proportional * delay, max)]
  }
}
