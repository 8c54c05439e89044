/**
 * Delays of messages: whole milliseconds from 0 to 24 hours.
 *
 * Public functions take a {@link DurationInput} (`"10 seconds"`, `"10s"`, `{ minutes: 5 }`, or a number of milliseconds)
 * and turn it into a `Delay` here, before anything is sent. Fractions round up, so no delay is shorter than asked.
 */
import * as Data from "effect/Data"
import * as Duration from "effect/Duration"
import * as OptionKind from "../options/OptionKind.ts"

/** A delay in whole milliseconds, 0 to {@link max}. */
export type Delay = number

type Short = `${number}${keyof typeof shortUnits}`

/** A delay as users write it: milliseconds, `"10 seconds"`, `"10s"`, `"1h 30m"`, or any other `Duration.Input`. */
export type DurationInput = Duration.Input | Short | `${Short} ${Short}`

/** The longest delay of a message: 24 hours, in milliseconds. */
export const max: Delay = 24 * 60 * 60 * 1000

/**
 * The error of a delay that is negative, not a duration, or longer than the broker supports. It is thrown before
 * anything is sent.
 */
export class InvalidDelay extends Data.TaggedError("InvalidDelay")<{
  /** The argument, for example `send.delay` or `message.retry.delay`. */
  readonly field: string
  readonly got: unknown
  /** The longest delay that the broker supports, in milliseconds. Default: 24 hours. */
  readonly limit?: Delay
}> {
  override get message() {
    const limit = format(this.limit ?? max)
    const hint = remedyWithin(0, this.limit ?? max)(this.got)
    return (
      `${this.field}: a delay is a duration from 0 to ${limit} (a number counts milliseconds), got ${show(this.got)}` +
      (hint === undefined ? "" : `. ${hint}`)
    )
  }
}

/** Shows also the content of objects, such as `{"secs":5}`: a duration holds no secret. */
const show = (value: unknown): string => {
  if (!OptionKind.isObject(value)) return OptionKind.show(value)
  try {
    return JSON.stringify(value)
  } catch {
    return OptionKind.show(value)
  }
}

const second = 1000
const minute = 60 * second
const hour = 60 * minute
const day = 24 * hour

/** The short names of units, in milliseconds. */
const shortUnits = { ms: 1, s: second, m: minute, h: hour, d: day, w: 7 * day }

/** Text such as `10s`, `1h 30m` and `500 ms`, including everything that {@link format} writes. */
const shortForm = /^(?:\d+(?:\.\d+)? ?(?:ms|[smhdw])(?: (?=\d)|$))+$/

const ofShort = (text: string): number =>
  [...text.matchAll(/([\d.]+) ?([a-z]+)/g)].reduce(
    (sum, [, count, unit]) => sum + Number(count) * shortUnits[unit as keyof typeof shortUnits], // It has the short form.
    0
  )

/** Returns the length of a duration in milliseconds, with fractions; NaN if the input is not a duration. */
export const toMillis = (input: DurationInput): number => {
  if (typeof input === "number") return input
  if (typeof input === "string" && shortForm.test(input)) return ofShort(input)
  try {
    const long = input as Duration.Input // It is not a short form.
    return isVague(long) ? Number.NaN : Duration.toMillis(Duration.fromInputUnsafe(long))
  } catch {
    return Number.NaN
  }
}

const units = ["weeks", "days", "hours", "minutes", "seconds", "milliseconds", "microseconds", "nanoseconds"]

/** Whether an object has a misspelt unit or a NaN, which `Duration` would read as 0. */
const isVague = (input: Duration.Input): boolean => {
  if (typeof input !== "object" || Duration.isDuration(input)) return false
  const given = Object.entries(input).filter(([, count]) => count !== undefined)
  return (
    given.length === 0 ||
    given.some(([unit, count]) => Number.isNaN(count) || !(Array.isArray(input) || units.includes(unit)))
  )
}

/** Returns whole milliseconds, rounded up; NaN if the input is negative or not a duration. */
const wholeMillis = (input: DurationInput): number => {
  const millis = toMillis(input)
  // Adding 0 turns -0 into 0.
  return millis >= 0 ? Math.ceil(millis) + 0 : Number.NaN
}

/**
 * Converts the delay that a program passed to milliseconds. `field` names the argument in the error.
 *
 * @throws InvalidDelay when the input is negative, NaN, longer than 24 hours, or not a duration
 */
export const parse = (field: string, input: DurationInput): Delay => {
  const millis = wholeMillis(input)
  if (!(millis <= max)) throw new InvalidDelay({ field, got: input })
  return millis
}

/**
 * Parses a duration that is an option of a constructor. `min`, `limit` and the result are in milliseconds.
 *
 * @throws RangeError naming the field when the duration is outside `min` to `limit`
 */
export const constrain = (field: string, input: DurationInput, min: number, limit: number): number => {
  const millis = wholeMillis(input)
  if (millis >= min && millis <= limit) return millis
  const hint = remedyWithin(min, limit)(input)
  throw new RangeError(
    `${field}: must be ${range(min, limit)}, got ${show(input)}` + (hint === undefined ? "" : `. ${hint}`)
  )
}

const range = (min: number, limit: number): string =>
  limit === Number.POSITIVE_INFINITY
    ? `a duration of at least ${format(min)}, or Infinity`
    : `a duration from ${format(min)} to ${format(limit)}`

/** Returns how to write a duration; `undefined` for one that is only too short or too long. */
const remedyWithin =
  (min: number, limit: number) =>
  (value: unknown): string | undefined => {
    if (typeof value === "number") {
      const isSeconds = value > 0 && value < min && value * second >= min && value * second <= limit
      const unit = value === 1 ? "second" : "seconds"
      return isSeconds ? `Write ${value * second} or "${value} ${unit}": a number counts milliseconds` : undefined
    }
    if (!Number.isNaN(toMillis(value as DurationInput))) return undefined // toMillis takes anything.
    if (typeof value === "string" && /^\d{1,15}$/.test(value)) {
      return `Write the number ${Number(value)} for milliseconds, or text with a unit, such as "${Number(value)} ms"`
    }
    return 'Write a number of milliseconds, or text such as "10 seconds" or "5 minutes"'
  }

/** The kind of options that are durations from `min` to `limit`, both in milliseconds. */
export const kind = (min: number, limit: number): OptionKind.OptionKind<number> => ({
  expected: range(min, limit),
  holds: (value) => {
    const millis = wholeMillis(value as DurationInput) // It returns NaN for any other value.
    return millis >= min && millis <= limit
  },
  read: (value) => {
    const millis = wholeMillis(OptionKind.readNumber(value) as DurationInput) // It returns NaN for any other value.
    return Number.isNaN(millis) ? value : millis
  },
  remedy: remedyWithin(min, limit),
  example: '"10 seconds"'
})

/**
 * Converts a duration that a user typed, such as `500ms`, `2h` or `2 minutes`, to milliseconds. Returns NaN for other
 * text.
 */
export const ofText = (text: string): number => {
  const trimmed = text.trim()
  return /^\d/.test(trimmed) ? toMillis(trimmed as DurationInput) : Number.NaN // toMillis returns NaN for other texts.
}

/** Returns the first candidate that is not `undefined`; 0 if all are `undefined`. An explicit 0 is a candidate. */
export const first = (...candidates: ReadonlyArray<Delay | undefined>): Delay => {
  for (const candidate of candidates) if (candidate !== undefined) return candidate
  return 0
}

/** Formats a delay for people: `1.5s`, `2m`, `1h 30m`. `Infinity` is `unlimited`. */
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

/** The kind of a delay that {@link parse} checks later, when the broker's limit is known. */
export const parsed: OptionKind.OptionKind = { ...kind(0, max), holds: () => true, fits: kind(0, max).holds }
