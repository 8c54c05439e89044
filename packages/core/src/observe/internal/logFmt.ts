/**
 * A line of the log as `key=value` pairs, as `Logger.formatLogFmt` writes it. `effect/Logger` is not used, because it loads streams
 * and a file system.
 */
import * as Cause from "effect/Cause"
import * as Formatter from "effect/Formatter"
import type * as Logger from "effect/Logger"
import * as References from "effect/References"

/** A `key=value` pair. A value with a space, a quote or a `=` is quoted as JSON. */
const field = (label: string, given: unknown): string => {
  const value = typeof given === "string" ? given : Formatter.format(given)
  return `${key(label)}=${/[\s"=]/.test(value) ? JSON.stringify(value) : value}`
}

const key = (label: string): string => label.replaceAll(/[\s="]/g, "_")

/** Formats a line of Effect's logger as one line of text. */
export const line = ({ cause, date, fiber, logLevel, message }: Logger.Options<unknown>): string =>
  [
    field("timestamp", date.toISOString()),
    field("level", logLevel.toUpperCase()),
    field("fiber", `#${fiber.id}`),
    ...[message].flat().map((part) => field("message", part)),
    ...(cause.reasons.length === 0 ? [] : [field("cause", Cause.pretty(cause))]),
    ...fiber.getRef(References.CurrentLogSpans).map(([label, start]) => `${key(label)}=${date.getTime() - start}ms`),
    ...Object.entries(fiber.getRef(References.CurrentLogAnnotations)).map(([label, value]) => field(label, value))
  ].join(" ")
