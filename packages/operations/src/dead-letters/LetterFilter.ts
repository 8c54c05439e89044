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

/** A filter. A letter must pass all given parts; without any, each letter passes. */
export interface LetterFilter {
  /** Dead-lettered for one of these reasons. */
  readonly reason?: ReadonlyArray<Metadata.Reason> | undefined
  /** With one of these ids. One that ends with `*` matches ids with that beginning. */
  readonly id?: ReadonlyArray<string> | undefined
  /** With each of these headers: `name`, or `name=value`. */
  readonly header?: ReadonlyArray<string> | undefined
  /** With this text in the name or message of its error or of a cause of it, in any case. */
  readonly error?: string | undefined
  /** Dead-lettered by consumers of this queue. */
  readonly origin?: string | undefined
  /** Dead-lettered since then. */
  readonly since?: Moment | undefined
  /** Dead-lettered longer ago than this, in milliseconds. */
  readonly olderThan?: number | undefined
  /** Dead-lettered within this many milliseconds. */
  readonly newerThan?: number | undefined
}

/** The part of a dead letter that filters read. */
export type Subject = Pick<DeadLetter, "id" | "origin" | "metadata" | "headers">

/** When Requeue dead-lettered a letter; for other letters, when they were published; `undefined` if unknown. */
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
 * Whether a letter passes the filter. One that lacks a property of the filter does not. `now` is in milliseconds since 1970.
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

/** Whether all letters pass the filter. */
export const isEmpty = (filter: LetterFilter): boolean => !Object.values(filter).some(isGiven)

const momentText = (moment: Moment): string =>
  "time" in moment ? new Date(moment.time).toISOString() : `${Delay.format(moment.ago)} ago`

/**
 * Returns the filter in words, one text for each given part.
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

/** Why a text is not a valid id filter; `undefined` if it is. */
export const idProblem = (text: string): string | undefined =>
  /^\*+$/.test(text) ? "must not be * alone, which means every letter" : undefined

/** Why a text is not a valid header filter; `undefined` if it is. */
export const headerProblem = (text: string): string | undefined =>
  text.startsWith("=") ? "must begin with the name of a header" : undefined

/** Ten years in milliseconds, the longest age of a filter. */
export const longest = 3650 * 24 * 60 * 60 * 1000

/** A date without a time is its beginning in UTC. A time without a zone is in this machine's zone. */
const date = /^(\d{4})-(\d\d)(?:-(\d\d)(?:T\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:?\d\d)?)?)?$/

/** Returns milliseconds since 1970; NaN if there is no such time. `Date` reads 30 February as 2 March. */
const timeOf = (text: string): number => {
  const [, year, month, day = "1"] = date.exec(text) ?? []
  const isDay = new Date(Date.UTC(Number(year), Number(month) - 1, Number(day))).getUTCDate() === Number(day)
  return isDay ? Date.parse(text) : Number.NaN
}

/** Parses a moment: a time such as `2026-03-14T15:09Z`, or an age such as `2h`; `undefined` if it is neither. */
export const momentOf = (text: string): Moment | undefined => {
  const time = timeOf(text.trim())
  if (!Number.isNaN(time)) return { time }
  const ago = Delay.ofText(text)
  return ago > 0 && ago <= longest ? { ago } : undefined
}
