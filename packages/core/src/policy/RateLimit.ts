/**
 * Rate limits: how many handler runs of a consumer may begin in a period. They protect a service that handlers call,
 * such as an API that allows 10 requests a second.
 *
 * In any window of `per` at most `max` runs begin. A run that may begin does not wait, so `max` runs may begin
 * together. The limit is exact in one consumer. Consumers do not share a limit, so divide it among them.
 */
import * as Delay from "../message/Delay.ts"
import * as OptionKind from "../options/OptionKind.ts"
import * as OptionNames from "../options/OptionNames.ts"

/** How many handler runs of a consumer may begin in a period. */
export interface RateLimit {
  /** How many runs may begin in any window of the length `per`. */
  readonly max: number
  /** The length of the window, in milliseconds. */
  readonly per: number
}

/** The options of {@link make}. */
export interface Options {
  /**
   * How many handler runs may begin in any window. A batch is one run. Each rerun by `immediate` is another run. Range:
   * 1 to 10,000.
   */
  readonly max: number
  /** Length of the window. Range: 1 ms to 24 hours; a number means milliseconds. */
  readonly per: Delay.DurationInput
}

const kinds = { max: OptionKind.whole(1, 10_000), per: Delay.kind(1, Delay.max) }

const example = { max: 10, per: "1 second" }

/** Both members are required, so a number or a duration alone is not enough. */
const both: OptionKind.OptionKind = {
  expected: "an object with max and per",
  holds: OptionKind.isObject,
  remedy: (value) => {
    const { max, per } = {
      ...example,
      ...(kinds.max.holds(value) ? { max: value } : kinds.per.holds(value) ? { per: value } : {})
    }
    return `Write { max: ${OptionKind.show(max)}, per: ${OptionKind.show(per)} }`
  }
}

/**
 * Builds a rate limit. Returns a built limit unchanged.
 *
 * @throws RangeError when an option is missing, unknown, of the wrong kind or out of range
 *
 * @example
 * ```ts
 * import { RateLimit } from "@requeue/core"
 *
 * RateLimit.make({ max: 10, per: "1 second" }) // => { max: 10, per: 1000 }
 * ```
 */
export const make = (options: Options): RateLimit => {
  OptionNames.orThrow(
    OptionNames.argument("RateLimit.make", "options", options, both) ??
      OptionNames.refusal("RateLimit.make", options, kinds)
  )
  const { max, per } = options
  OptionNames.orThrow(
    OptionNames.argument("RateLimit.make", "max", max, kinds.max) ??
      OptionNames.argument("RateLimit.make", "per", per, kinds.per)
  )
  return { max, per: Delay.parse("per", per) }
}
