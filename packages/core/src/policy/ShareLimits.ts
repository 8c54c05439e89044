/**
 * Limits of shares: how many messages of one share are in progress at the same time, and how many begin in a window. A share has the
 * messages of a queue with the same `fairBy`.
 *
 * When to use: to protect what each tenant has, such as an account at an API that allows 10 requests a second. A limit of all messages
 * together is `concurrency` or `rateLimit`.
 *
 * The broker counts, so the limits hold over all consumers of the queue that have them, in all processes. What exceeds a limit stays in
 * the queue, and other shares do not wait for it. Messages without `fairBy` have no limits.
 */
import * as OptionKind from "../options/OptionKind.ts"
import * as OptionNames from "../options/OptionNames.ts"
import * as RateLimit from "./RateLimit.ts"

/** How long a handler may take to begin after its delivery, in milliseconds: a window of deliveries is longer by that. */
export const margin = 50

/** The limits of each share. */
export interface ShareLimits {
  /** How many messages of a share may be delivered and not yet settled; `undefined`: no limit. */
  readonly concurrency: number | undefined
  /** How many messages of a share may be delivered in any window; `undefined`: no limit. */
  readonly rateLimit: RateLimit.RateLimit | undefined
}

/** The options of {@link make}. At least one is required. */
export interface Options {
  /**
   * How many messages of a share are in progress at the same time. A batch counts with all its messages. Range: 1 to 1,000. Default: no
   * limit.
   */
  readonly concurrency?: number | undefined
  /**
   * How many messages of a share are delivered in any window. A redelivery counts, so `retry.immediate` must be 0. The window is 50 ms
   * longer than `per`, because a handler begins shortly after the delivery. Default: no limit.
   */
  readonly rateLimit?: RateLimit.Options | undefined
}

/** The kind of each option, by name. */
export const kinds = {
  concurrency: OptionKind.whole(1, 1000),
  rateLimit: true // RateLimit.make names the wrong member.
} satisfies OptionNames.Of<Options>

const either: OptionKind.OptionKind = {
  expected: "an object with concurrency, rateLimit or both",
  holds: (value) => OptionKind.isObject(value) && Object.values(value).some((each) => each !== undefined),
  remedy: (value) => `Write { concurrency: ${kinds.concurrency.holds(value) ? String(value) : 1} }`
}

/**
 * Builds the limits of shares. Returns built limits unchanged.
 *
 * @throws RangeError when both options are missing, or one is unknown, of the wrong kind or out of range
 *
 * @example
 * ```ts
 * import { ShareLimits } from "@requeue/core"
 *
 * ShareLimits.make({ concurrency: 2 }) // => { concurrency: 2, rateLimit: undefined }
 * ```
 */
export const make = (options: Options): ShareLimits => {
  OptionNames.orThrow(
    OptionNames.argument("ShareLimits.make", "options", options, either) ??
      OptionNames.refusal("ShareLimits.make", options, kinds)
  )
  const { concurrency, rateLimit } = options
  return { concurrency, rateLimit: rateLimit === undefined ? undefined : RateLimit.make(rateLimit) }
}
