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
import * as Delay from "./Delay.ts"
import type { ErrorSummary } from "./Metadata.ts"

/** Throw it (or fail with it) when no retry can help: the message is dead-lettered at once with reason `permanent`. */
export class PermanentError extends Data.TaggedError("PermanentError")<{
  readonly message: string
  readonly cause?: unknown
}> {
  readonly permanent = true
}

/** Throw it when the time of the next attempt is known. `retryAfter` is in seconds, or an HTTP date. */
export class RetryLaterError extends Data.TaggedError("RetryLaterError")<{
  readonly message: string
  readonly retryAfter: number | string | Date
  readonly cause?: unknown
}> {}

/** Throw it when the message is worthless: it is removed and leaves no dead letter, only an audit event. */
export class DropError extends Data.TaggedError("DropError")<{
  readonly message: string
  readonly cause?: unknown
}> {}

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
 * property decides it. `now` is in milliseconds since the epoch.
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
  if (error instanceof Error) return { name: String(error.name), message: String(error.message) }
  if (isRecord(error) && typeof error["_tag"] === "string") {
    return { name: error["_tag"], message: typeof error["message"] === "string" ? error["message"] : show(error) }
  }
  return { name: `NonError(${error === null ? "null" : typeof error})`, message: show(error) }
}

/**
 * A Retry-After value in milliseconds from `now`: seconds as a number or digits, an HTTP date, or a `Date`. A time in
 * the past is 0, one beyond 24 hours is 24 hours, anything else is `undefined`.
 */
export const parseRetryAfter = (value: unknown, now: number): Delay.Delay | undefined => {
  const millis =
    typeof value === "number"
      ? value * 1000
      : value instanceof Date
        ? Math.max(0, value.getTime() - now)
        : typeof value === "string"
          ? /^\s*\d+(\.\d+)?\s*$/.test(value)
            ? Number(value) * 1000
            : Math.max(0, Date.parse(value) - now)
          : Number.NaN
  return millis >= 0 ? Math.min(Math.ceil(millis), Delay.max) : undefined
}

type Properties = {
  readonly name?: unknown
  readonly _tag?: unknown
  readonly permanent?: unknown
  readonly retryAfter?: unknown
}

/** How far a cause chain is followed; a chain may be a cycle. */
const chainLimit = 10

const causes = (error: unknown): ReadonlyArray<Properties> => {
  const chain: Array<Properties> = []
  for (let next = error; isRecord(next) && chain.length < chainLimit; next = next["cause"]) chain.push(next)
  return chain
}

const show = (value: unknown): string => {
  try {
    return typeof value === "string" ? value : (JSON.stringify(value) ?? String(value))
  } catch {
    return String(value)
  }
}

const isRecord = (u: unknown): u is Record<string, unknown> => typeof u === "object" && u !== null
