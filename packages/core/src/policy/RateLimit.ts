/**
 * Rate limits: how many handler runs of a consumer may begin in a time. They protect what handlers call, such as an API that
 * allows 10 requests a second.
 *
 * In any window of `per` at most `max` runs begin, and a run that may begin does so at once: `max` of them may begin together.
 * The limit is exact in one consumer. Consumers do not share it, so divide it among them.
 *
 * It is pure: the state holds when the last runs began, and the time is an argument.
 */
import * as Delay from "../message/Delay.ts"
import * as OptionKind from "../options/OptionKind.ts"
import * as OptionNames from "../options/OptionNames.ts"

/** How many handler runs may begin in a time. */
export interface RateLimit {
  /** Runs that may begin in any window of `per`. */
  readonly max: number
  /** The length of the window, in milliseconds. */
  readonly per: number
}

/** Options of {@link make}. */
export interface Options {
  /** Handler runs that may begin in any window of `per`, 1 to 10,000. A batch is one run, each immediate retry another one. */
  readonly max: number
  /** The length of the window, 1 ms to 24 hours; a number counts milliseconds. */
  readonly per: Delay.DurationInput
}

const kinds = { max: OptionKind.whole(1, 10_000), per: Delay.kind(1, Delay.max) }

/**
 * Builds a rate limit. A built limit stays what it is.
 *
 * @throws RangeError when an option is missing, unknown, of another kind or out of its range
 *
 * @example
 * ```ts
 * import { RateLimit } from "@requeue/core"
 *
 * RateLimit.make({ max: 10, per: "1 second" }) // => { max: 10, per: 1000 }
 * ```
 */
export const make = (options: Options): RateLimit => {
  OptionNames.check("RateLimit.make", options, kinds)
  const { max, per } = options
  OptionNames.orThrow(
    OptionNames.argument("RateLimit.make", "max", max, kinds.max) ??
      OptionNames.argument("RateLimit.make", "per", per, kinds.per)
  )
  return { max, per: Delay.parse("per", per) }
}

/** A run, and those that are next to it in its list. */
interface Run {
  readonly at: number
  readonly rest: Run | undefined
}

/** The runs that began within the window: a queue of two lists. */
export interface State {
  /** Their number. */
  readonly count: number
  /** The earlier ones, the first one first. It is empty only where there is none. */
  readonly first: Run | undefined
  /** The later ones, the last one first. */
  readonly last: Run | undefined
}

/** The state of a consumer that starts. */
export const initial: State = { count: 0, first: undefined, last: undefined }

/** Notes that a run begins at this time, in monotonic milliseconds. It may be no earlier than those before. */
export const begin = ({ count, first, last }: State, now: number): State =>
  first === undefined
    ? { count: 1, first: { at: now, rest: undefined }, last: undefined }
    : { count: count + 1, first, last: { at: now, rest: last } }

const reversed = (run: Run | undefined): Run | undefined => {
  let result: Run | undefined
  for (let each = run; each !== undefined; each = each.rest) result = { at: each.at, rest: result }
  return result
}

/** Forgets the runs that began before the window which ends at this time. Returns the same state where there is none. */
export const at = ({ per }: RateLimit, state: State, now: number): State => {
  let { count, first, last } = state
  while (first !== undefined && first.at + per <= now) {
    count--
    first = first.rest
    if (first !== undefined) continue
    first = reversed(last)
    last = undefined
  }
  return count === state.count ? state : { count, first, last }
}

/** The runs that a limit allows. */
export interface Decision {
  /** Runs that may begin now. */
  readonly room: number
  /** Milliseconds until one more may begin; infinite where `room` is `max`. */
  readonly wait: number
}

/** Decides what the limit allows at this time. */
export const decide = (limit: RateLimit, state: State, now: number): Decision => {
  const { count, first } = at(limit, state, now)
  return { room: limit.max - count, wait: first === undefined ? Number.POSITIVE_INFINITY : first.at + limit.per - now }
}
