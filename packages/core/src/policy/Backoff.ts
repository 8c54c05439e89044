/**
 * Backoffs: a backoff turns the number of attempts into the delay of the next delivery.
 *
 * A backoff is plain immutable data. {@link delayAfter} is pure and total: from attempt 1 on, the delay is a whole
 * number of milliseconds from 0 to the cap. The cap limits the curve, then jitter draws a delay below the cap. The
 * number of attempts is the only state, because the retries of one message may run in different processes.
 */
import * as Cause from "effect/Cause"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Pull from "effect/Pull"
import * as Schedule from "effect/Schedule"
import * as Delay from "../message/Delay.ts"
import * as OptionKind from "../options/OptionKind.ts"
import * as OptionNames from "../options/OptionNames.ts"
import * as Jitter from "./Jitter.ts"

/** How the delay grows before cap and jitter, in milliseconds. */
export type Curve =
  | { readonly _tag: "Constant"; readonly delay: number }
  | { readonly _tag: "Linear"; readonly step: number }
  | { readonly _tag: "Exponential"; readonly base: number; readonly factor: number }
  | { readonly _tag: "Sequence"; readonly delays: ReadonlyArray<number> }
  | { readonly _tag: "Switch"; readonly after: number; readonly first: Backoff; readonly next: Backoff }

/** A curve with its jitter and its cap. */
export interface Backoff {
  readonly curve: Curve
  readonly jitter: Jitter.Jitter
  /** The cap: the longest delay, in milliseconds. */
  readonly max: Delay.Delay
}

/** The options of every backoff. */
export interface Options {
  /** The longest delay. Range: 0 to 24 hours; a number means milliseconds. Default: 24 hours. */
  readonly max?: Delay.DurationInput
  /** How delays are randomized: `none`, `full`, `equal`, `decorrelated` or `{ proportional: 0.2 }`. Default: `"none"`. */
  readonly jitter?: Jitter.Jitter
}

/** The options of {@link exponential}. */
export interface ExponentialOptions extends Options {
  /** Of `exponential`: factor by which each delay grows. Range: 1 or more. Default: 2. */
  readonly factor?: number
}

const kinds: OptionNames.Of<Options> = { max: true, jitter: true }

const check = (name: string, options: object, more: Readonly<Record<string, true>> = {}): void =>
  OptionNames.orThrow(OptionNames.refusal(name, options, { ...kinds, ...more }))

/** `name` is the constructor, in errors. Both faces export it under this name. */
const make = (name: string, curve: Curve, { jitter = "none", max }: Options = {}): Backoff => {
  OptionNames.orThrow(Jitter.refusal(name, "jitter", jitter))
  return { curve, jitter, max: max === undefined ? Delay.max : Delay.constrain(`${name}: max`, max, 0, Delay.max) }
}

/**
 * Refuses a cap below the shortest delay, which would replace every delay. `what` describes that delay, which has `millis`
 * milliseconds.
 */
const uncapped = (name: string, backoff: Backoff, what: string, millis: number): Backoff => {
  if (backoff.max >= millis) return backoff
  const write = writer(backoff.max, millis)
  const problem = `max must be at least ${what} (${write(millis)}), got ${write(backoff.max)}`
  throw OptionNames.error(
    name,
    undefined,
    problem,
    `Raise max, or lower ${what}: every delay would be ${write(backoff.max)}`
  )
}

/** Returns a function that writes these durations as text; in milliseconds if the text would round one of them. */
const writer = (...durations: ReadonlyArray<number>): ((millis: number) => string) =>
  durations.every((millis) => Delay.ofText(Delay.format(millis)) === millis) ? Delay.format : (millis) => `${millis}ms`

const duration = (field: string, input: Delay.DurationInput, min = 0): number =>
  Delay.constrain(field, input, min, Delay.max)

/**
 * Makes a backoff with the same delay after every attempt.
 *
 * @throws RangeError when the delay is not a duration from 0 to 24 hours, `max` is below that delay, or an option is
 * out of range
 */
export const constant = (delay: Delay.DurationInput, options: Options = {}): Backoff => {
  check("constant", options)
  const millis = duration("constant: delay", delay)
  return uncapped("constant", make("constant", { _tag: "Constant", delay: millis }, options), "the delay", millis)
}

/**
 * Makes a backoff whose delay is `attempts x step`, up to the cap.
 *
 * @throws RangeError when the step is not a duration from 0 to 24 hours, `max` is below that delay, or an option is out
 * of range
 */
export const linear = (step: Delay.DurationInput, options: Options = {}): Backoff => {
  check("linear", options)
  const millis = duration("linear: step", step)
  return uncapped("linear", make("linear", { _tag: "Linear", step: millis }, options), "the step", millis)
}

/**
 * Makes a backoff whose delay is `base x factor^(attempts - 1)`, up to the cap. The default factor is 2.
 *
 * @throws RangeError when the base is not a duration from 1 ms to 24 hours, the factor is below 1, `max` is below the
 * base, or an option is out of range
 *
 * @example
 * ```ts
 * import { Backoff } from "@requeue/core"
 *
 * const backoff = Backoff.exponential("1 second", { factor: 2, max: "5 seconds" })
 * ;[1, 2, 3, 4].map((attempts) => Backoff.delayAfter(backoff, attempts)) // => [1000, 2000, 4000, 5000]
 * ```
 */
export const exponential = (base: Delay.DurationInput, given: ExponentialOptions = {}): Backoff => {
  check("exponential", given, { factor: true })
  const { factor = 2, ...options } = given
  OptionNames.orThrow(OptionNames.argument("exponential", "factor", factor, factorKind))
  const millis = duration("exponential: base", base, 1)
  const backoff = make("exponential", { _tag: "Exponential", base: millis, factor }, options)
  return uncapped("exponential", backoff, "the base", millis)
}

const factorKind: OptionKind.OptionKind = {
  expected: "a finite number >= 1",
  holds: (value) => OptionKind.number(1).holds(value) && Number.isFinite(value)
}

const listed: OptionKind.OptionKind = {
  ...OptionKind.list,
  remedy: () => 'Write sequence(["10 seconds", "1 minute"])'
}

/**
 * Makes a backoff from a list of delays; the last delay repeats.
 *
 * @throws RangeError when the list is empty, a delay is not a duration from 0 to 24 hours, `max` is below all delays,
 * or an option is out of range
 */
export const sequence = (delays: ReadonlyArray<Delay.DurationInput>, options: Options = {}): Backoff => {
  OptionNames.orThrow(OptionNames.argument("sequence", "delays", delays, listed))
  check("sequence", options)
  if (delays.length === 0) {
    throw OptionNames.error("sequence", undefined, "delays must not be empty, got []", listed.remedy?.(delays))
  }
  const backoff = sequenceOf("sequence", delays, options)
  return uncapped("sequence", backoff, "the shortest delay", Math.min(...backoff.curve.delays))
}

const sequenceOf = (name: string, delays: ReadonlyArray<Delay.DurationInput>, options?: Options) => {
  const curve = {
    _tag: "Sequence",
    delays: delays.map((delay, i) => duration(`${name}: delays[${i}]`, delay))
  } as const
  return { ...make(name, curve, options), curve }
}

const built: OptionKind.OptionKind = {
  expected: "a backoff",
  holds: (value) => OptionKind.isObject(value) && "curve" in value,
  remedy: () => 'Write a backoff such as constant("10 seconds")'
}

/**
 * Makes a backoff that uses `first` for the first `after` attempts, and then `next`, from its first delay.
 *
 * @throws RangeError when `after` is not a whole number >= 1, or `first` or `next` is not a backoff
 *
 * @example
 * ```ts
 * import { Backoff } from "@requeue/core"
 *
 * const backoff = Backoff.switchAfter(2, Backoff.constant("10 seconds"), Backoff.linear("15 minutes"))
 * ;[1, 2, 3, 4].map((attempts) => Backoff.delayAfter(backoff, attempts)) // => [10000, 10000, 900000, 1800000]
 * ```
 */
export const switchAfter = (after: number, first: Backoff, next: Backoff): Backoff => {
  OptionNames.orThrow(OptionNames.argument("switchAfter", "after", after, OptionKind.whole(1)))
  for (const [name, given] of Object.entries({ first, next })) {
    OptionNames.orThrow(OptionNames.argument("switchAfter", name, given, built))
  }
  return make("switchAfter", { _tag: "Switch", after, first, next })
}

/**
 * Returns the same backoff with a lower cap.
 *
 * @throws RangeError when the cap is not a duration from 0 to 24 hours
 */
export const capped = (self: Backoff, max: Delay.DurationInput): Backoff => ({
  ...self,
  max: Math.min(self.max, duration("capped: max", max))
})

/** How many delays {@link fromSchedule} takes. */
const scheduleSteps = 100

/**
 * Makes a backoff from the first 100 delays of an Effect `Schedule`; the last delay repeats. Delays of more than 24
 * hours become 24 hours.
 *
 * When to use: to reuse an existing schedule. The schedule sets the delays, not the number of attempts. It runs only
 * once, in this call, so its jitter would be the same for all messages: use {@link Options.jitter} instead.
 *
 * @throws RangeError when the schedule ends before its first delay, or an option is out of range
 */
export const fromSchedule = <Output>(schedule: Schedule.Schedule<Output>, options: Options = {}): Backoff => {
  const delays = Effect.runSync(
    Effect.gen(function* () {
      const step = yield* Schedule.toStep(schedule)
      const taken: Array<number> = []
      let now = 0
      while (taken.length < scheduleSteps) {
        const next = yield* step(now, undefined).pipe(
          Effect.map(([, delay]) => Option.some(delay)),
          Pull.catchDone(() => Effect.succeed(Option.none<Duration.Duration>()))
        )
        if (Option.isNone(next)) break
        const millis = Duration.toMillis(next.value)
        taken.push(Math.min(Math.ceil(millis), Delay.max))
        now += millis
      }
      return taken
    }).pipe(Effect.catchCause((cause) => Effect.die(Cause.squash(cause))))
  )
  if (delays.length === 0) {
    throw new RangeError("fromSchedule: schedule must have at least one delay, got one that ends immediately")
  }
  check("fromSchedule", options)
  return sequenceOf("fromSchedule", delays, options)
}

type Plain = Exclude<Curve, { _tag: "Switch" }>

const curveAt = (curve: Plain, attempts: number): number => {
  switch (curve._tag) {
    case "Constant":
      return curve.delay
    case "Linear":
      return attempts * curve.step
    case "Exponential":
      return curve.base * curve.factor ** (attempts - 1)
    case "Sequence":
      return curve.delays[Math.min(attempts, curve.delays.length) - 1]!
  }
}

/** The delays before jitter. A power that overflows is Infinity; the cap makes it finite. */
const baseAt = (curve: Plain, attempts: number, max: number): Jitter.Base => ({
  delay: Math.min(curveAt(curve, attempts), max),
  first: Math.min(curveAt(curve, 1), max),
  previous: Math.min(curveAt(curve, Math.max(1, attempts - 1)), max)
})

/** Returns a whole number >= 1, also for a wrong count. */
const countOf = (attempts: number): number =>
  attempts >= 1 ? Math.min(Math.floor(attempts), Number.MAX_SAFE_INTEGER) : 1

/** The range before rounding. The cap of a switch applies to its parts. */
const exactRange = (self: Backoff, attempts: number, max: number): readonly [number, number] => {
  const { curve, jitter } = self
  const cap = Math.min(self.max, max)
  if (curve._tag !== "Switch") return Jitter.range(jitter, baseAt(curve, attempts, cap), cap)
  return attempts <= curve.after
    ? exactRange(curve.first, attempts, cap)
    : exactRange(curve.next, attempts - curve.after, cap)
}

/** The floating-point error of a product, in milliseconds, that must not round up. */
const tolerance = 1e-6

/** Whole milliseconds. Adding 0 turns -0 into 0. */
const rounded = (millis: number): Delay.Delay => Math.ceil(millis - tolerance) + 0

/**
 * Returns the delay between a failed delivery and the next one, in milliseconds. `attempts` is the number of deliveries
 * so far, from 1; `random` is from 0 (inclusive) to 1 (exclusive), for jitter.
 */
export const delayAfter = (self: Backoff, attempts: number, random = 0): Delay.Delay => {
  const [low, high] = exactRange(self, countOf(attempts), self.max)
  return rounded(low + random * (high - low))
}

/** Returns the shortest and the longest delay that {@link delayAfter} can return, in milliseconds. */
export const range = (self: Backoff, attempts: number): readonly [Delay.Delay, Delay.Delay] => {
  const [low, high] = exactRange(self, countOf(attempts), self.max)
  return [rounded(low), rounded(high)]
}

/** Returns the longest delay of the whole backoff, in milliseconds. The broker must support a delay of this length. */
export const longest = (self: Backoff): Delay.Delay => rounded(longestOf(self, self.max))

const longestOf = ({ curve, jitter, max }: Backoff, limit: number): number => {
  const cap = Math.min(max, limit)
  const spread = (delay: number): number => {
    const top = Math.min(delay, cap)
    return Jitter.range(jitter, { delay: top, first: top, previous: top }, cap)[1]
  }
  switch (curve._tag) {
    case "Switch":
      return Math.max(longestOf(curve.first, cap), longestOf(curve.next, cap))
    case "Sequence":
      return spread(Math.max(...curve.delays))
    case "Constant":
      return spread(curve.delay)
    case "Exponential":
      return curve.factor === 1 ? spread(curve.base) : cap
    case "Linear":
      return curve.step === 0 ? 0 : cap
  }
}
