/**
 * How a handler fails, and what a failure tells about the message: may it be tried again, when, or never.
 *
 * Any thrown value is a failure. An error says more about itself by these properties, its own or those of an error in
 * its `cause` chain:
 *
 * - `permanent: true`: do not try again; dead-letter at once.
 * - `retryAfter`: seconds, or an HTTP date as text or `Date`, as in the Retry-After header.
 *
 * {@link PermanentError}, {@link RetryLaterError} and {@link DropError} are errors of ours that carry them.
 */
import * as Data from "effect/Data"
import * as Delay from "../message/Delay.ts"
import type { ErrorSummary } from "../message/Metadata.ts"

/** What an error of ours says: a text, or a text with its cause. */
export interface Report {
  readonly message: string
  readonly cause?: unknown
}

const toReport = (report: string | Report): Report => (typeof report === "string" ? { message: report } : report)

/**
 * Throw it (or fail with it) when no retry can help: the message is dead-lettered at once with reason `permanent`.
 *
 * @example
 * ```ts
 * import { PermanentError } from "@requeue/core/promise"
 *
 * new PermanentError("the customer is gone").message // => "the customer is gone"
 * ```
 */
export class PermanentError extends Data.TaggedError("PermanentError")<Report> {
  readonly permanent = true
  constructor(report: string | Report) {
    super(toReport(report))
  }
}

/** Throw it when the time of the next attempt is known. `retryAfter` is in seconds, or an HTTP date. */
export class RetryLaterError extends Data.TaggedError("RetryLaterError")<
  Report & { readonly retryAfter: number | string | Date }
> {}

/** Throw it when the message is worthless: it is removed and leaves no dead letter, only an audit event. */
export class DropError extends Data.TaggedError("DropError")<Report> {
  constructor(report: string | Report) {
    super(toReport(report))
  }
}

/** The handler did not end within `handlerTimeout`; it was interrupted and the attempt counts as failed. */
export class HandlerTimeout extends Data.TaggedError("HandlerTimeout")<{ readonly timeout: number }> {
  override get message() {
    return `handlerTimeout: the handler did not end within ${Delay.format(this.timeout)}`
  }
}

/** What the core keeps of a thrown value. */
export interface Failure {
  /** The thrown value itself. */
  readonly error: unknown
  readonly summary: ErrorSummary
  /** Names and tags of the error and of every error in its cause chain. */
  readonly tags: ReadonlyArray<string>
  readonly permanent: boolean
  /** Milliseconds, from the error's `retryAfter`. */
  readonly retryAfter: Delay.Delay | undefined
}

/**
 * Reads a failure out of any thrown value, over its whole cause chain; the outermost error that says something about a
 * property decides it. Never throws, whatever was thrown. `now` is in milliseconds since the epoch.
 */
export const make = (error: unknown, now: number): Failure => {
  const chain = causes(error)
  const tags = chain.flatMap(({ name, _tag }) => [_tag, name].filter((tag) => typeof tag === "string"))
  return {
    error,
    summary: summarize(error),
    tags,
    permanent: chain.find(({ permanent }) => typeof permanent === "boolean")?.permanent === true,
    retryAfter: chain.map(({ retryAfter }) => parseRetryAfter(retryAfter, now)).find((delay) => delay !== undefined)
  }
}

/** The name and message that travel with a message, for an Error or for anything else that was thrown. */
export const summarize = (error: unknown): ErrorSummary => {
  if (!isRecord(error)) return { name: `NonError(${error === null ? "null" : typeof error})`, message: show(error) }
  const [tag, name, message] = [read(error, "_tag"), read(error, "name"), read(error, "message")]
  if (isError(error)) return { name: show(name), message: show(message) }
  return {
    name: [tag, name].find((name) => typeof name === "string") ?? "NonError(object)",
    message: typeof message === "string" ? message : show(error)
  }
}

/**
 * A Retry-After value in milliseconds from `now`: seconds as a number or digits, an HTTP (or ISO 8601) date, or a
 * `Date`. A time in the past is 0, one beyond 24 hours is 24 hours, anything else is `undefined`.
 */
export const parseRetryAfter = (value: unknown, now: number): Delay.Delay | undefined => {
  const millis = millisOf(value, now)
  return millis >= 0 ? Math.max(0, Math.min(Math.ceil(millis), Delay.max)) : undefined
}

const millisOf = (value: unknown, now: number): number => {
  if (typeof value === "number") return value * 1000
  if (typeof value === "string" && /^\s*\d+(\.\d+)?\s*$/.test(value)) return Number(value) * 1000
  return Math.max(0, (typeof value === "string" ? parseDate(value) : timeOf(value)) - now)
}

/** `Date.parse` takes almost any text that ends in a number for a date; a past one would mean "at once". */
const parseDate = (text: string): number => {
  if (/^\s*\d{4}-\d{2}-\d{2}/.test(text)) return Date.parse(text)
  if (!/^\s*(mon|tue|wed|thu|fri|sat|sun)[a-z]*,? .*\d{2}:\d{2}:\d{2}/i.test(text)) return Number.NaN
  // The oldest of the three forms of an HTTP date does not say that it is in GMT.
  return Date.parse(/\d\s*$/.test(text) ? `${text} GMT` : text)
}

const timeOf = (value: unknown): number => {
  try {
    return value instanceof Date ? value.getTime() : Number.NaN
  } catch {
    return Number.NaN
  }
}

type Properties = {
  readonly name: unknown
  readonly _tag: unknown
  readonly permanent: unknown
  readonly retryAfter: unknown
}

/** How far a cause chain is followed; a chain may be a cycle. */
const chainLimit = 10

const causes = (error: unknown): ReadonlyArray<Properties> => {
  const chain: Array<Properties> = []
  for (let next = error; isRecord(next) && chain.length < chainLimit; next = read(next, "cause")) {
    chain.push({
      name: read(next, "name"),
      _tag: read(next, "_tag"),
      permanent: read(next, "permanent"),
      retryAfter: read(next, "retryAfter")
    })
  }
  return chain
}

/** A property that may be a getter, or of a proxy, that throws. */
const read = (from: object, key: string): unknown => {
  try {
    return Reflect.get(from, key)
  } catch {
    return undefined
  }
}

const isError = (u: object): boolean => {
  try {
    return u instanceof Error
  } catch {
    return false
  }
}

const show = (value: unknown): string => {
  if (typeof value === "string") return value
  for (const render of [JSON.stringify, String]) {
    try {
      const text = render(value)
      if (text !== undefined) return text
    } catch {
      // The next one may do.
    }
  }
  return `an unprintable ${typeof value}`
}

const isRecord = (u: unknown): u is object => typeof u === "object" && u !== null
