/**
 * Jitters: how a computed delay is spread, so that messages that failed together do not come back together.
 *
 * A jitter is data; {@link apply} is a pure function whose randomness is an argument.
 */

/**
 * - `none`: the delay itself.
 * - `full`: anything from 0 to the delay. Spreads best; a retry may come at once.
 * - `equal`: half the delay, and anything from 0 to the other half on top.
 * - `decorrelated`: anything from the first delay to three times the previous one, whatever the backoff's own growth.
 * - `{ proportional: p }`: the delay plus or minus the share `p` (0 to 1) of it.
 *
 * The formulas of full, equal and decorrelated jitter are those of
 * https://aws.amazon.com/blogs/architecture/exponential-backoff-and-jitter/. There, decorrelated jitter remembers the
 * last delay that was drawn; a message has no such memory when it changes consumers, so the undisturbed previous delay
 * stands in for it.
 */
export type Jitter = "none" | "full" | "equal" | "decorrelated" | { readonly proportional: number }

/** What {@link apply} needs to know of a backoff at one attempt, in milliseconds. */
export interface Base {
  readonly delay: number
  readonly first: number
  readonly previous: number
}

/**
 * Validates a jitter.
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

/** The jittered delay; `random` is a number from 0 (inclusive) to 1 (exclusive). */
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

/** The smallest and the largest delay that {@link apply} can return. */
export const range = (jitter: Jitter, base: Base): readonly [number, number] => [
  apply(jitter, base, 0),
  apply(jitter, base, 1)
]
