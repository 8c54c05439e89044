/**
 * Filters of dead letters as values: by error, time, origin, reason, headers and ids.
 *
 * When to use: where people choose letters, as on a command line or a page, and what they have chosen is written down: pass
 * `matches(filter, now)` as the option `filter`. A program passes any function.
 */
import { Delay } from "@requeue/core"
import { Metadata } from "@requeue/core/port"
import type { DeadLetter } from "./internal/deadLetter.ts"

/** A time, in milliseconds since 1970, or milliseconds before now. */
export type Moment = { readonly time: number } | { readonly ago: number }

/** A filter. A letter must pass all parts that are given; without any, each letter passes. */
export interface LetterFilter {
  /** Given up for one of these reasons. */
  readonly reason?: ReadonlyArray<Metadata.Reason> | undefined
  /** With one of these ids; one that ends with `*` means those that begin so. */
  readonly id?: ReadonlyArray<string> | undefined
  /** With each of these headers: `name`, or `name=value`. */
  readonly header?: ReadonlyArray<string> | undefined
  /** With this text in the name or message of its error or of a cause of it, in any case. */
  readonly error?: string | undefined
  /** Given up by consumers of this queue. */
  readonly origin?: string | undefined
  /** Given up since then. */
  readonly since?: Moment | undefined
  /** Given up longer ago, in milliseconds. */
  readonly olderThan?: number | undefined
  /** Given up within so many milliseconds. */
  readonly newerThan?: number | undefined
}

/** The part of a dead letter that filters look at. */
export type Subject = Pick<DeadLetter, "id" | "origin" | "metadata" | "headers">

/** When a letter was given up; for one that Requeue did not give up, when it was published; `undefined` where nobody knows. */
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

/** The moment in milliseconds since 1970. */
const timeAt = (moment: Moment, now: number): number => ("time" in moment ? moment.time : now - moment.ago)

/**
 * Whether a letter passes the filter; one that lacks what a part looks at does not. `now` is in milliseconds since 1970.
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
    // Of a letter that nobody knows the time of, no comparison holds.
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

/** Whether all letters pass the filter. */
export const isEmpty = (filter: LetterFilter): boolean => !Object.values(filter).some(isGiven)

const momentText = (moment: Moment): string =>
  "time" in moment ? new Date(moment.time).toISOString() : `${Delay.format(moment.ago)} ago`

/**
 * The filter in words, one for each part that is given.
 *
 * @example
 * ```ts
 * import { LetterFilter } from "@requeue/operations"
 *
 * LetterFilter.describe({ error: "503", olderThan: 7_200_000 }) // => ['error with "503"', "given up more than 2h ago"]
 * ```
 */
export const describe = (filter: LetterFilter): ReadonlyArray<string> => {
  const { error, header = [], id = [], newerThan, olderThan, origin, reason = [], since: moment } = filter
  return [
    ...(error === undefined ? [] : [`error with ${JSON.stringify(error)}`]),
    ...(reason.length === 0 ? [] : [reason.join(" or ")]),
    ...(origin === undefined ? [] : [`from ${origin}`]),
    ...(moment === undefined ? [] : [`given up since ${momentText(moment)}`]),
    ...(newerThan === undefined ? [] : [`given up within ${Delay.format(newerThan)}`]),
    ...(olderThan === undefined ? [] : [`given up more than ${Delay.format(olderThan)} ago`]),
    ...header.map((each) => `header ${each}`),
    ...(id.length === 0 ? [] : [`id ${id.join(" or ")}`])
  ]
}

/** Why a text is no id to filter by; `undefined` where it is one. */
export const idProblem = (text: string): string | undefined =>
  /^\*+$/.test(text) ? "must not be * alone, which means every letter" : undefined

/** Why a text is no header to filter by; `undefined` where it is one. */
export const headerProblem = (text: string): string | undefined =>
  text.startsWith("=") ? "must begin with the name of a header" : undefined

/** Ten years, in milliseconds: the longest age that a filter asks for. */
export const longest = 3650 * 24 * 60 * 60 * 1000

/** A date without a time of the day is its beginning; one without a zone is of this machine's zone, or UTC for a date alone. */
const date = /^(\d{4})-(\d\d)(?:-(\d\d)(?:T\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:?\d\d)?)?)?$/

/** Answers milliseconds since 1970; NaN where there is no such time. `Date` takes 30 February for 2 March. */
const timeOf = (text: string): number => {
  const [, year, month, day = "1"] = date.exec(text) ?? []
  const isDay = new Date(Date.UTC(Number(year), Number(month) - 1, Number(day))).getUTCDate() === Number(day)
  return isDay ? Date.parse(text) : Number.NaN
}

/** The moment that a text means: `2026-03-14T15:09Z`, or `2h`, which is so long ago; `undefined` where it is none. */
export const momentOf = (text: string): Moment | undefined => {
  const time = timeOf(text.trim())
  if (!Number.isNaN(time)) return { time }
  const ago = Delay.ofText(text)
  return ago > 0 && ago <= longest ? { ago } : undefined
}
