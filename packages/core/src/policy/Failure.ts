/**
 * Failures: how a handler failed, and whether and when its message may be retried.
 *
 * Any thrown value is a failure. An error, or one in its `cause` chain, may have these properties:
 *
 * - `permanent: true`: no retry can help; the message is dead-lettered at once. `permanent: false` on a codec's error: a
 *   retry may help; without it, an undecodable body is dead-lettered at once.
 * - `retryAfter`: when to try again: seconds, or an HTTP date, as in the Retry-After header.
 *   https://www.rfc-editor.org/rfc/rfc9110#field.retry-after
 *
 * {@link PermanentError} and {@link RetryLaterError} set them; {@link DropError} removes its message.
 */
import * as Data from "effect/Data"
import * as Delay from "../message/Delay.ts"
import type { ErrorSummary } from "../message/Metadata.ts"
import { chainLimit, chainOf, describe, isError, isRecord, read, show, summarize } from "./internal/thrown.ts"
import * as StackTrace from "./StackTrace.ts"

export { summarize } from "./internal/thrown.ts"

/** The arguments of the constructor of {@link PermanentError} or {@link DropError}: message and cause. */
export interface Report {
  /** The problem. It travels with a dead letter. */
  readonly message: string
  /** The error that caused this one. The policy also classifies its cause chain. Default: none. */
  readonly cause?: unknown
}

/** The arguments of the constructor of {@link RetryLaterError}: message, cause and time. */
export interface Later extends Report {
  /** The earliest next attempt: seconds, an HTTP date, or a `Date`. */
  readonly retryAfter: number | string | Date
}

const toReport = (report: string | Report): Report => (typeof report === "string" ? { message: report } : report)

/**
 * An error to throw, or to fail with, if no retry can help: the message is dead-lettered at once with reason
 * `permanent`.
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
 * An error to throw, or to fail with, if you know the time of the next attempt. `retryAfter` is in seconds, or an HTTP
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
    super(toReport(report) as Later) // In JavaScript it may be text; the consumer logs the missing time.
  }
}

/**
 * An error to throw, or to fail with, to remove a worthless message without a dead letter. Only a `Dropped` event
 * reports the message.
 */
export class DropError extends Data.TaggedError("DropError")<Report> {
  constructor(report: string | Report) {
    super(toReport(report))
  }
}

/** The error of a handler that exceeded `handlerTimeout` and was interrupted. The attempt counts as failed. */
export class HandlerTimeout extends Data.TaggedError("HandlerTimeout")<{
  /** The time limit, in milliseconds. */
  readonly timeout: number
}> {
  override get message() {
    const ended = `handlerTimeout: the handler did not end within ${Delay.format(this.timeout)}`
    return `${ended}. Pass the handler's signal to what the handler awaits, such as fetch(url, { signal }), or raise handlerTimeout`
  }
}

/**
 * The error of a codec that did not decode a body in time. The attempt counts as failed, because a service that the
 * codec uses may be down.
 */
export class DecodeTimeout extends Data.TaggedError("DecodeTimeout")<{
  /** The time limit, in milliseconds. */
  readonly timeout: number
}> {
  override get message() {
    return `codec.decode: the codec did not answer within ${Delay.format(this.timeout)}`
  }
}

/** A thrown value, with the facts that decide what happens to its message. */
export interface Failure {
  readonly error: unknown
  /**
   * The error's name; its message, with the messages of its causes; and its stack, which is formatted when it is first
   * read.
   */
  readonly summary: ErrorSummary
  /** The error and its causes, the outermost first, each with its own message. */
  readonly chain?: ReadonlyArray<ErrorSummary> | undefined
  /** Where the error and its causes were thrown; `undefined` if stack traces are disabled. */
  readonly trace?: StackTrace.Trace | undefined
  /** Names and tags of the error and of every error in its cause chain. */
  readonly tags: ReadonlyArray<string>
  /** Whether the error rules out retries. */
  readonly permanent: boolean
  /** The error's `retryAfter` in milliseconds, at most 24 hours. */
  readonly retryAfter: Delay.Delay | undefined
  /** Why the error's `permanent` or `retryAfter` is ignored or changed; `undefined` if neither is. */
  readonly problem?: string | undefined
}

/**
 * Makes a failure of any thrown value. `permanent` and `retryAfter` are each read from the outermost error of the cause
 * chain that has the property. Never throws. `now` is in milliseconds since the epoch. `trace` is the stack trace of
 * the error. Default: none.
 */
export const make = (error: unknown, now: number, trace?: StackTrace.Trace): Failure => {
  const chain = causes(error)
  const errors = chainOf(error)
  const [{ message, name }, ...inner] = errors as [ErrorSummary, ...ReadonlyArray<ErrorSummary>] // It has the error.
  const summary = { name, message: describe(message, inner) }
  const tags = chain.flatMap(({ name, _tag }) => [_tag, name].filter((tag) => typeof tag === "string"))
  return {
    error,
    summary: trace === undefined ? summary : StackTrace.traced(summary, () => StackTrace.render(trace())),
    chain: errors,
    trace,
    tags,
    permanent: chain.find(({ permanent }) => typeof permanent === "boolean")?.permanent === true,
    retryAfter: chain.map(({ retryAfter }) => parseRetryAfter(retryAfter, now)).find((delay) => delay !== undefined),
    problem: problemOf(chain, now)
  }
}

/** Whether the error has `permanent: false`, so a retry may help. Never throws. */
export const isTemporary = (error: unknown): boolean =>
  causes(error).find(({ permanent }) => typeof permanent === "boolean")?.permanent === false

/** A name or a code that a program chooses, and no text. */
const word = /^[A-Za-z][\w.-]{0,63}$/

const isWord = (value: unknown): value is string => typeof value === "string" && word.test(value)

/**
 * Returns an error to show instead of an error whose text may contain a secret. The new error has the name and the
 * code, such as `ECONNREFUSED`, of the given error or its cause, but not its text, and no reference to it. `what` names
 * the call that failed. Never throws.
 *
 * When to use: in an adapter, for errors of the function by which the program supplies credentials.
 */
export const withoutText = (what: string, error: unknown): Error => {
  const record = isRecord(error) ? error : {}
  const inside = [record, read(record, "cause")].filter(isRecord)
  const type = read(record, "constructor")
  // A class that sets no name inherits "Error".
  const own =
    isRecord(error) && isError(error) && read(record, "name") === "Error" && typeof type === "function"
      ? read(type, "name")
      : undefined
  const name = [own, summarize(error).name].find(isWord)
  const code = inside.map((each) => read(each, "code")).find(isWord)
  const called = [name ?? "an error", ...(code === undefined ? [] : [`(${code})`])].join(" ")
  const hidden = new Error(`${what} has failed with ${called}; its text may contain a secret and is not shown`)
  return Object.assign(hidden, name === undefined ? {} : { name }, code === undefined ? {} : { code })
}

/**
 * Parses a Retry-After value into milliseconds: seconds (a number or digits), an HTTP or ISO 8601 date, or a `Date`.
 * For past times it returns 0, for times beyond 24 hours 24 hours, and for other values `undefined`. `now` is in epoch
 * milliseconds.
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

/** `Date.parse` alone reads almost any text that ends in a number as a past date, which would mean an immediate retry. */
const parseDate = (text: string): number => {
  if (/^\s*\d{4}-\d{2}-\d{2}/.test(text)) return Date.parse(text)
  if (!/^\s*(mon|tue|wed|thu|fri|sat|sun)[a-z]*,? .*\d{2}:\d{2}:\d{2}/i.test(text)) return Number.NaN
  // The oldest of the three HTTP date formats omits GMT.
  return Date.parse(/\d\s*$/.test(text) ? `${text} GMT` : text)
}

/** A subclass of Date may return anything. */
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

/** Describes the first property in a chain that is ignored or changed, with its path. */
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
  if (millis > Delay.max) return `${got}, which is more than 24 hours from now; the retry is due after 24 hours`
  const date = typeof retryAfter === "string" ? parseDate(retryAfter) : timeOf(retryAfter)
  return date < now - datesAreWhole ? `${got}, which is in the past; the retry is immediate` : undefined
}

const quoted = (value: unknown): string =>
  (typeof value === "string" ? JSON.stringify(value) : show(value)).slice(0, 100)

/** HTTP dates have whole seconds, so the current time may look up to this many milliseconds old. */
const datesAreWhole = 1000
