/**
 * Log lines. Errors of the program's own logger are ignored, because they would end the code that logs.
 *
 * When to use: in core and in adapters, instead of `Effect.log*`.
 */
import type * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"

/** The annotations of a line, by name. */
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
