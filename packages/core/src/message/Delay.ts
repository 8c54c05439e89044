/**
 * Delays of messages: whole milliseconds from 0 to 24 hours.
 *
 * Every public function that takes a delay takes a `Duration.Input` (`"10 seconds"`, `{ minutes: 5 }`, or a number of
 * milliseconds) and turns it into a `Delay` here, before anything is sent. Fractions are rounded up, so a delay is
 * never shorter than asked.
 */
import * as Data from "effect/Data"
import * as Duration from "effect/Duration"

/** A delay in whole milliseconds, 0 to {@link max}. */
export type Delay = number

/** What users write for a delay: a number of milliseconds, `"10 seconds"`, or any other `Duration.Input`. */
export type Input = Duration.Input

/** The longest delay that every broker honours: 24 hours, in milliseconds. */
export const max: Delay = 24 * 60 * 60 * 1000

/**
 * A delay that no broker could honour. Raised where the delay is given, before anything is sent.
 *
 * `field` names the argument, for example `send.delay` or `message.retry.delay`.
 */
export class InvalidDelay extends Data.TaggedError("InvalidDelay")<{
  readonly field: string
  readonly got: unknown
  /** The longest delay possible, in milliseconds, when the broker cannot honour 24 hours. */
  readonly limit?: Delay
}> {
  override get message() {
    const limit = format(this.limit ?? max)
    return `${this.field}: a delay is a duration from 0 to ${limit} (a number counts milliseconds), got ${show(this.got)}`
  }
}

const show = (value: unknown): string => {
  try {
    return typeof value === "object" ? JSON.stringify(value) : String(value)
  } catch {
    return typeof value
  }
}

/** The length of a duration in milliseconds, NaN where it is none. */
export const toMillis = (input: Input): number => {
  if (typeof input === "number") return input
  try {
    return isVague(input) ? Number.NaN : Duration.toMillis(Duration.fromInputUnsafe(input))
  } catch {
    return Number.NaN
  }
}

const units = ["weeks", "days", "hours", "minutes", "seconds", "milliseconds", "microseconds", "nanoseconds"]

/** An object in which `Duration` would overlook a misspelt unit or a NaN, and read 0. */
const isVague = (input: Input): boolean => {
  if (typeof input !== "object" || Duration.isDuration(input)) return false
  const given = Object.entries(input).filter(([, count]) => count !== undefined)
  return (
    given.length === 0 ||
    given.some(([unit, count]) => Number.isNaN(count) || !(Array.isArray(input) || units.includes(unit)))
  )
}

/** Whole milliseconds, rounded up; NaN where the input is negative or no duration. */
const wholeMillis = (input: Input): number => {
  const millis = toMillis(input)
  // The sum turns -0 into 0.
  return millis >= 0 ? Math.ceil(millis) + 0 : Number.NaN
}

/**
 * Turns what the user wrote into a `Delay`.
 *
 * @throws InvalidDelay when the input is negative, NaN, longer than 24 hours or no duration at all
 *
 * @example
 * ```ts
 * import { Delay } from "@requeue/core"
 *
 * Delay.parse("send.delay", "10 seconds") // => 10000
 * ```
 */
export const parse = (field: string, input: Input): Delay => {
  const millis = wholeMillis(input)
  if (!(millis <= max)) throw new InvalidDelay({ field, got: input })
  return millis
}

/**
 * Validates a duration inside a policy's constructor.
 *
 * @throws RangeError naming the constructor's field when the duration is outside `min`..`limit`
 */
export const constrain = (field: string, input: Input, min: number, limit: number): number => {
  const millis = wholeMillis(input)
  if (millis >= min && millis <= limit) return millis
  throw new RangeError(`${field}: must be a duration from ${format(min)} to ${format(limit)}, got ${show(input)}`)
}

/**
 * The first delay that was given, in the order of precedence in which the candidates are listed; 0 when none was.
 * An explicit 0 is a given value.
 */
export const first = (...candidates: ReadonlyArray<Delay | undefined>): Delay => {
  for (const candidate of candidates) if (candidate !== undefined) return candidate
  return 0
}

/** A delay for people: `1.5s`, `2m`, `1h 30m`. */
export const format = (millis: number): string => {
  if (millis === Number.POSITIVE_INFINITY) return "unlimited"
  if (Math.round(millis) < 1000) return `${Math.round(millis)}ms`
  const tenths = Math.round(millis / 100) / 10
  if (tenths < 60) return `${tenths}s`
  const seconds = Math.round(millis / 1000)
  const units = [
    ["d", Math.floor(seconds / 86_400)],
    ["h", Math.floor(seconds / 3600) % 24],
    ["m", Math.floor(seconds / 60) % 60],
    ["s", seconds % 60]
  ] as const
  return units
    .filter(([, count]) => count > 0)
    .slice(0, 2)
    .map(([unit, count]) => `${count}${unit}`)
    .join(" ")
}
