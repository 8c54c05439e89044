/**
 * Writes log lines. Errors of the program's own logger are ignored, because they would end the code that logs.
 *
 * When to use: in core and in adapters, instead of `Effect.log*`.
 */
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Formatter from "effect/Formatter"
import type * as Logger from "effect/Logger"
import * as References from "effect/References"
import * as Failure from "../policy/Failure.ts"

/** The fields of a line besides its message, by name; docs/observability.md lists them. */
export type Annotations = Readonly<Record<string, unknown>>

const writer =
  (write: (...parts: ReadonlyArray<unknown>) => Effect.Effect<void>) =>
  (
    message: string,
    annotations: Annotations = {},
    ...causes: ReadonlyArray<Cause.Cause<unknown>>
  ): Effect.Effect<void> =>
    Effect.catchDefect(Effect.annotateLogs(write(message, ...causes), annotations), () => Effect.void)

/** Writes a line of level `Info`: everything is normal. */
export const info = writer(Effect.logInfo)

/** Writes a line of level `Warn`: something needs attention. */
export const warning = writer(Effect.logWarning)

/** Writes a line of level `Error`: something does not work. */
export const error = writer(Effect.logError)

/** Returns the fields of an error: `errorName`, `errorMessage`, and `errorStack` if it has a stack. */
export const errorFields = ({
  message,
  name,
  stack
}: {
  readonly name: string
  readonly message: string
  readonly stack?: string | undefined
}): Annotations => ({
  errorName: name,
  errorMessage: message,
  ...(stack === undefined ? {} : { errorStack: stack })
})

/** A line of the log as data. */
export interface Line {
  /** The level in lower case, such as `warn`. */
  readonly level: string
  readonly message: string
  readonly fields: Annotations
}

const shown = (part: unknown): string => (typeof part === "string" ? part : Formatter.format(part))

const causeFields = (cause: Cause.Cause<unknown>): Annotations => {
  if (cause.reasons.length === 0) return {}
  return errorFields({ ...Failure.summarize(Cause.squash(cause)), stack: Cause.pretty(cause) })
}

/** Returns the line that Effect passes to a logger, as data. */
export const toLine = ({ cause, date, fiber, logLevel, message }: Logger.Options<unknown>): Line => ({
  level: logLevel.toLowerCase(),
  message: [message].flat().map(shown).join(" "),
  fields: {
    ...causeFields(cause),
    ...Object.fromEntries(
      fiber.getRef(References.CurrentLogSpans).map(([label, start]) => [label, date.getTime() - start])
    ),
    ...fiber.getRef(References.CurrentLogAnnotations)
  }
})

/** Returns the line that Effect passes to a logger, as one line of JSON: `timestamp`, `level`, `message` and the fields. */
export const toJson = (options: Logger.Options<unknown>): string => {
  const { fields, level, message } = toLine(options)
  const standard = { timestamp: options.date.toISOString(), level, message }
  // The first spread sets the order, the last one the values.
  return Formatter.formatJson({ ...standard, ...fields, ...standard })
}
