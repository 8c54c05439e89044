/**
 * Filters of dead letters as values: by error, time, origin, reason, headers and ids.
 *
 * When to use: where people choose letters, on a command line or a page, and their choice is recorded. Pass
 * `matches(filter, now)` as the option `filter`. Programs can pass any function.
 */
import { Delay } from "@requeue/core"
import { Metadata } from "@requeue/core/port"
import type { DeadLetter } from "./internal/deadLetter.ts"

/** A time, in milliseconds since 1970, or milliseconds before now. */
export type Moment = { readonly time: number } | { readonly ago: number }

/** A filter of dead letters. A letter passes if it has every given property; an empty filter passes every letter. */
export interface LetterFilter {
  /** Letters dead-lettered for one of these reasons. */
  readonly reason?: ReadonlyArray<Metadata.Reason> | undefined
  /** Letters with one of these ids. `order-*` matches every id that begins with `order-`. */
  readonly id?: ReadonlyArray<string> | undefined
  /** Letters with each of these headers, given as `name` or as `name=value`. */
  readonly header?: ReadonlyArray<string> | undefined
  /** Letters with this text, in any case, in the name or message of their error or of a cause of that error. */
  readonly error?: string | undefined
  /** Letters that consumers of this queue dead-lettered. */
  readonly origin?: string | undefined
  /** Letters dead-lettered at or after this moment. */
  readonly since?: Moment | undefined
  /** Letters dead-lettered longer ago than this many milliseconds. */
  readonly olderThan?: number | undefined
  /** Letters dead-lettered in the last milliseconds, of which this is the number. */
  readonly newerThan?: number | undefined
}

/** The part of a dead letter that filters read. */
export type Subject = Pick<DeadLetter, "id" | "origin" | "metadata" | "headers">

/**
 * Returns when Requeue dead-lettered a letter, in milliseconds since 1970. If Requeue did not, it returns when the letter
 * was published; `undefined` if that is unknown.
 */
export const since = ({ metadata, origin }: Pick<Subject, "metadata" | "origin">): number | undefined =>
  origin?.at ?? Metadata.publishedAt(metadata)

const isId = (asked: string, id: string): boolean =>
  asked === id || (asked.endsWith("*") && id.startsWith(asked.slice(0, -1)))

/** The lines of a stack trace that are no frames: they name the causes. */
const causesOf = (stack = ""): ReadonlyArray<string> => stack.split("\n").filter((line) => !/^\s/.test(line))

/** Whether the error of a letter, or one of its causes, has this text. */
const hasError = (text: string, { origin }: Subject): boolean => {
  if (origin === undefined) return false
  const { message, name, stack } = origin.error
  return [`${name}: ${message}`, ...causesOf(stack)].join("\n").toLowerCase().includes(text.toLowerCase())
}

const hasHeader = (asked: string, headers: Subject["headers"]): boolean => {
  const [, name = asked, value] = /^([^=]+)=(.*)$/s.exec(asked) ?? []
  return Object.hasOwn(headers, name) && (value === undefined || headers[name] === value)
}

/** Returns a moment in milliseconds since 1970. */
const timeAt = (moment: Moment, now: number): number => ("time" in moment ? moment.time : now - moment.ago)

/**
 * Returns a function that reports whether a letter passes the filter. A letter without a property that the filter names
 * does not pass. `now` is in milliseconds since 1970.
 *
 * @example
 * ```ts
 * import { Metadata } from "@requeue/core/port"
 * import { LetterFilter } from "@requeue/operations"
 *
 * const letter = { id: "order-7", headers: { tenant: "acme" }, metadata: Metadata.make("order-7", 0), origin: undefined }
 * LetterFilter.matches({ id: ["order-*"], header: ["tenant=acme"] }, 60_000)(letter) // => true
 * ```
 */
export const matches =
  (filter: LetterFilter, now: number) =>
  (letter: Subject): boolean => {
    const { error, header = [], id = [], newerThan, olderThan, origin: queue, reason = [] } = filter
    const { origin } = letter
    // No comparison holds for a letter without a known time.
    const time = since(letter) ?? Number.NaN
    const age = now - time
    return (
      (reason.length === 0 || (origin !== undefined && reason.includes(origin.reason))) &&
      (id.length === 0 || id.some((asked) => isId(asked, letter.id))) &&
      header.every((asked) => hasHeader(asked, letter.headers)) &&
      (filter.since === undefined || time >= timeAt(filter.since, now)) &&
      (error === undefined || hasError(error, letter)) &&
      (queue === undefined || origin?.queue === queue) &&
      (olderThan === undefined || age > olderThan) &&
      (newerThan === undefined || age < newerThan)
    )
  }

const isGiven = (part: unknown): boolean => part !== undefined && !(Array.isArray(part) && part.length === 0)

/** Whether the filter is empty, so every letter passes. */
export const isEmpty = (filter: LetterFilter): boolean => !Object.values(filter).some(isGiven)

const momentText = (moment: Moment): string =>
  "time" in moment ? new Date(moment.time).toISOString() : `${Delay.format(moment.ago)} ago`

/**
 * Describes the filter in words, with one text for each given part.
 *
 * @example
 * ```ts
 * import { LetterFilter } from "@requeue/operations"
 *
 * LetterFilter.describe({ error: "503", olderThan: 7_200_000 }) // => ['error with "503"', "dead-lettered more than 2h ago"]
 * ```
 */
export const describe = (filter: LetterFilter): ReadonlyArray<string> => {
  const { error, header = [], id = [], newerThan, olderThan, origin, reason = [], since: moment } = filter
  return [
    ...(error === undefined ? [] : [`error with ${JSON.stringify(error)}`]),
    ...(reason.length === 0 ? [] : [reason.join(" or ")]),
    ...(origin === undefined ? [] : [`from ${origin}`]),
    ...(moment === undefined ? [] : [`dead-lettered since ${momentText(moment)}`]),
    ...(newerThan === undefined ? [] : [`dead-lettered within ${Delay.format(newerThan)}`]),
    ...(olderThan === undefined ? [] : [`dead-lettered more than ${Delay.format(olderThan)} ago`]),
    ...header.map((each) => `header ${each}`),
    ...(id.length === 0 ? [] : [`id ${id.join(" or ")}`])
  ]
}

/** Returns why a text is not a valid id filter; `undefined` if the text is valid. */
export const idProblem = (text: string): string | undefined =>
  /^\*+$/.test(text) ? "must not be * alone, which means every letter" : undefined

/** Returns why a text is not a valid header filter; `undefined` if the text is valid. */
export const headerProblem = (text: string): string | undefined =>
  text.startsWith("=") ? "must begin with the name of a header" : undefined

/** The longest age in a filter: ten years, in milliseconds. */
export const longest = 3650 * 24 * 60 * 60 * 1000

/**
 * The form of a date. Without a time, it is the beginning of that day in UTC. A time without a zone is in this machine's
 * zone.
 */
const date = /^(\d{4})-(\d\d)(?:-(\d\d)(?:T\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:?\d\d)?)?)?$/

/** Returns milliseconds since 1970; NaN if there is no such time. `Date` reads 30 February as 2 March. */
const timeOf = (text: string): number => {
  const [, year, month, day = "1"] = date.exec(text) ?? []
  const isDay = new Date(Date.UTC(Number(year), Number(month) - 1, Number(day))).getUTCDate() === Number(day)
  return isDay ? Date.parse(text) : Number.NaN
}

/** Parses a time such as `2026-03-14T15:09Z`, or an age such as `2h`; returns `undefined` for any other text. */
export const momentOf = (text: string): Moment | undefined => {
  const time = timeOf(text.trim())
  if (!Number.isNaN(time)) return { time }
  const ago = Delay.ofText(text)
  return ago > 0 && ago <= longest ? { ago } : undefined
}
