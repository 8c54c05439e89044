/**
 * Failures: how a handler fails, and whether and when its message may be tried again.
 *
 * Any thrown value is a failure. An error, or one in its `cause` chain, may have these properties:
 *
 * - `permanent: true`: no retry can help; the message is dead-lettered at once. `permanent: false` says of a codec's error
 *   that a retry may help: without it, a body that cannot be decoded is dead-lettered at once.
 * - `retryAfter`: the time until the next attempt, in seconds, or as an HTTP date, as in the Retry-After header.
 *   https://www.rfc-editor.org/rfc/rfc9110#field.retry-after
 *
 * {@link PermanentError} and {@link RetryLaterError} have them; {@link DropError} removes its message.
 */
import * as Data from "effect/Data"
import * as Delay from "../message/Delay.ts"
import type { ErrorSummary } from "../message/Metadata.ts"
import { isError, isRecord, read, show, summarize } from "./internal/thrown.ts"
import * as StackTrace from "./StackTrace.ts"

export { summarize } from "./internal/thrown.ts"

/** The content of an error of this module. */
export interface Report {
  /** The fault, for people. It travels with a dead letter. */
  readonly message: string
  /** The error behind it, whose chain is classified as well. Default: none. */
  readonly cause?: unknown
}

/** The content of a {@link RetryLaterError}. */
export interface Later extends Report {
  /** When the next attempt may be: seconds, an HTTP date, or a `Date`. */
  readonly retryAfter: number | string | Date
}

const toReport = (report: string | Report): Report => (typeof report === "string" ? { message: report } : report)

/**
 * The error to throw, or fail with, when no retry can help: the message is dead-lettered at once with reason `permanent`.
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

/**
 * The error to throw, or fail with, when the time of the next attempt is known. `retryAfter` is in seconds, or an HTTP
 * date.
 *
 * @example
 * ```ts
 * import { RetryLaterError } from "@requeue/core/promise"
 *
 * new RetryLaterError({ message: "the API is busy", retryAfter: 30 }).retryAfter // => 30
 * ```
 */
export class RetryLaterError extends Data.TaggedError("RetryLaterError")<Later> {
  constructor(report: Later) {
    super(toReport(report) as Later) // In JavaScript it may be text. The consumer logs that there is no time.
  }
}

/**
 * The error to throw, or fail with, when a message is worthless: it is removed without a dead letter. Only a `Dropped`
 * event tells of it.
 */
export class DropError extends Data.TaggedError("DropError")<Report> {
  constructor(report: string | Report) {
    super(toReport(report))
  }
}

/** The handler did not end within `handlerTimeout`. It was interrupted, and the attempt counts as failed. */
export class HandlerTimeout extends Data.TaggedError("HandlerTimeout")<{
  /** Milliseconds. */
  readonly timeout: number
}> {
  override get message() {
    return `handlerTimeout: the handler did not end within ${Delay.format(this.timeout)}`
  }
}

/** The codec did not decode a body in time. The attempt counts as failed: what the codec asks may be down. */
export class DecodeTimeout extends Data.TaggedError("DecodeTimeout")<{
  /** Milliseconds. */
  readonly timeout: number
}> {
  override get message() {
    return `codec.decode: the codec did not answer within ${Delay.format(this.timeout)}`
  }
}

/** A thrown value, and the parts of it that decide about its message. */
export interface Failure {
  /** The thrown value itself. */
  readonly error: unknown
  /** Its name and message; and its stack, which is read when it is first asked for. */
  readonly summary: ErrorSummary
  /** Where it and its causes were thrown; `undefined` where that is turned off. */
  readonly trace?: StackTrace.Trace | undefined
  /** Names and tags of the error and of every error in its cause chain. */
  readonly tags: ReadonlyArray<string>
  /** Whether the error says that no retry can help. */
  readonly permanent: boolean
  /** The error's `retryAfter` in milliseconds, at most 24 hours. */
  readonly retryAfter: Delay.Delay | undefined
  /** Why `permanent` or `retryAfter` of the error is not followed as it was written. Default: it is. */
  readonly problem?: string | undefined
}

/**
 * The failure that any thrown value is. Of the errors in its cause chain, the outermost one that has a property decides
 * it. This never throws, whatever was thrown. `now` is in milliseconds since the epoch. `trace` is the stack trace of the error.
 * Default: none.
 */
export const make = (error: unknown, now: number, trace?: StackTrace.Trace): Failure => {
  const chain = causes(error)
  const tags = chain.flatMap(({ name, _tag }) => [_tag, name].filter((tag) => typeof tag === "string"))
  return {
    error,
    summary:
      trace === undefined ? summarize(error) : StackTrace.traced(summarize(error), () => StackTrace.render(trace())),
    trace,
    tags,
    permanent: chain.find(({ permanent }) => typeof permanent === "boolean")?.permanent === true,
    retryAfter: chain.map(({ retryAfter }) => parseRetryAfter(retryAfter, now)).find((delay) => delay !== undefined),
    problem: problemOf(chain, now)
  }
}

/** Whether the error says that a retry may help, by `permanent: false`. This never throws, whatever was thrown. */
export const isTemporary = (error: unknown): boolean =>
  causes(error).find(({ permanent }) => typeof permanent === "boolean")?.permanent === false

/** A name or a code that a program chooses, and no text. */
const word = /^[A-Za-z][\w.-]{0,63}$/

const isWord = (value: unknown): value is string => typeof value === "string" && word.test(value)

/**
 * An error that stands for one whose text may hold a secret. It has the name of that error, and its code or that of its cause, such
 * as `ECONNREFUSED`, but neither its text nor the error itself. `what` is what failed. This never throws, whatever was thrown.
 *
 * When to use: in an adapter, for what a function of the program that gives credentials has thrown.
 *
 * @example
 * ```ts
 * import { Failure } from "@requeue/core/port"
 *
 * Failure.withoutText("the function", new TypeError("the token t0ken is wrong")).message
 * // => "the function has failed with TypeError; its text may hold a secret, and is not shown"
 * ```
 */
export const withoutText = (what: string, error: unknown): Error => {
  const record = isRecord(error) ? error : {}
  const inside = [record, read(record, "cause")].filter(isRecord)
  const type = read(record, "constructor")
  // A class that sets no name has that of all errors.
  const own =
    isRecord(error) && isError(error) && read(record, "name") === "Error" && typeof type === "function"
      ? read(type, "name")
      : undefined
  const name = [own, summarize(error).name].find(isWord)
  const code = inside.map((each) => read(each, "code")).find(isWord)
  const called = [name ?? "an error", ...(code === undefined ? [] : [`(${code})`])].join(" ")
  const hidden = new Error(`${what} has failed with ${called}; its text may hold a secret, and is not shown`)
  return Object.assign(hidden, name === undefined ? {} : { name }, code === undefined ? {} : { code })
}

/**
 * The delay that a Retry-After value asks for, in milliseconds: the value is seconds (a number or digits), an HTTP or ISO
 * 8601 date, or a `Date`. A time in the past is 0, one beyond 24 hours is 24 hours, anything else is `undefined`. `now`
 * is in milliseconds since the epoch.
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

/** `Date.parse` alone would take almost any text that ends in a number for a date in the past, which means "at once". */
const parseDate = (text: string): number => {
  if (/^\s*\d{4}-\d{2}-\d{2}/.test(text)) return Date.parse(text)
  if (!/^\s*(mon|tue|wed|thu|fri|sat|sun)[a-z]*,? .*\d{2}:\d{2}:\d{2}/i.test(text)) return Number.NaN
  // The oldest of the three forms of an HTTP date is in GMT without saying so.
  return Date.parse(/\d\s*$/.test(text) ? `${text} GMT` : text)
}

/** A subclass of Date may answer anything. */
const timeOf = (value: unknown): number => {
  try {
    const time: unknown = value instanceof Date ? value.getTime() : undefined
    return typeof time === "number" ? time : Number.NaN
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

/** The number of errors of a cause chain that are read; a chain may be a cycle. */
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

/** The first property of the errors of a chain that is not followed as it was written, with its place. */
const problemOf = (chain: ReadonlyArray<Properties>, now: number): string | undefined => {
  let path = "error"
  for (const { _tag, permanent, retryAfter } of chain) {
    if (permanent !== undefined && permanent !== null && typeof permanent !== "boolean") {
      return `${path}.permanent is ${quoted(permanent)}, which is neither true nor false; it is ignored`
    }
    if (retryAfter !== undefined && retryAfter !== null) return problemOfTime(`${path}.retryAfter`, retryAfter, now)
    if (_tag === "RetryLaterError") {
      return `${path} is a RetryLaterError without retryAfter. Write new RetryLaterError({ message, retryAfter: seconds })`
    }
    path += ".cause"
  }
  return undefined
}

const problemOfTime = (place: string, retryAfter: unknown, now: number): string | undefined => {
  const got = `${place} is ${quoted(retryAfter)}`
  const millis = millisOf(retryAfter, now)
  if (!(millis >= 0)) return `${got}, which is neither a number of seconds nor a date; it is ignored`
  if (millis > Delay.max) return `${got}, which is more than 24 hours from now; the retry comes after 24 hours`
  const date = typeof retryAfter === "string" ? parseDate(retryAfter) : timeOf(retryAfter)
  return date < now - datesAreWhole ? `${got}, which is in the past; the retry comes at once` : undefined
}

const quoted = (value: unknown): string =>
  (typeof value === "string" ? JSON.stringify(value) : show(value)).slice(0, 100)

/** An HTTP date has whole seconds, so one that means now may be so many milliseconds old. */
const datesAreWhole = 1000
