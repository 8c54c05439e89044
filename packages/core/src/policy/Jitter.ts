/**
 * Jitters spread delays at random, so messages that failed together are not retried together.
 *
 * A jitter is data. {@link range} is pure; the delay is drawn uniformly from that range. The cap limits the range, not the
 * drawn delay: otherwise most late delays would be exactly the cap.
 */
import * as OptionKind from "../options/OptionKind.ts"
import * as OptionNames from "../options/OptionNames.ts"

/**
 * How a backoff's delay becomes a random delay.
 *
 * - `none`: always the delay itself.
 * - `full`: from 0 to the delay. It spreads best, but a retry may be immediate.
 * - `equal`: from half the delay to the delay.
 * - `decorrelated`: from the first delay to three times the previous delay, whatever the backoff's growth.
 * - `{ proportional: p }`: the delay plus or minus the share `p` (0 to 1) of it; at the cap, only minus.
 *
 * Full and equal jitter use the formulas of https://aws.amazon.com/blogs/architecture/exponential-backoff-and-jitter/,
 * such as `random_between(0, min(cap, base * 2 ** attempt))`. Decorrelated jitter differs from the formula there,
 * `min(cap, random_between(base, sleep * 3))`: the cap limits the range, and `sleep` is the previous delay before
 * jitter, because messages do not store the drawn delay.
 */
export type Jitter = "none" | "full" | "equal" | "decorrelated" | { readonly proportional: number }

/** The delays of a backoff before jitter, in milliseconds. */
export interface Base {
  /** The delay of this attempt. */
  readonly delay: number
  readonly first: number
  readonly previous: number
}

const words = ["none", "full", "equal", "decorrelated"] as const

const share: OptionKind.OptionKind = {
  expected: "a number from 0 to 1",
  holds: (value) => typeof value === "number" && value >= 0 && value <= 1
}

const word = OptionKind.oneOf(words)

const shape: OptionKind.OptionKind = {
  expected: `${word.expected}, or { proportional: 0 to 1 }`,
  holds: (value) => word.holds(value),
  remedy: (value) => (share.holds(value) ? `Write { proportional: ${OptionKind.show(value)} }` : word.remedy?.(value))
}

/** Returns the error of an invalid jitter; `undefined` if it is valid. `call` and `name` name the option in the error. */
export const refusal = (call: string, name: string, jitter: unknown): RangeError | undefined => {
  if (!OptionKind.isObject(jitter)) return OptionNames.argument(call, name, jitter, shape)
  return (
    OptionNames.refusal(`${call}: ${name}`, jitter, { proportional: true }) ??
    OptionNames.argument(call, `${name}.proportional`, Reflect.get(jitter, "proportional"), share)
  )
}

/**
 * Checks and returns a jitter.
 *
 * @throws RangeError when `proportional` is not from 0 to 1, or the name is unknown
 */
export const make = (jitter: Jitter): Jitter => {
  OptionNames.orThrow(refusal("Jitter.make", "jitter", jitter))
  return jitter
}

/** Returns the shortest and longest delay after jitter, in milliseconds. `max` is the cap; `base` must not exceed it. */
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
