/**
 * Lines of the log. The logger is the program's own: what it throws is left out, because it would end whatever writes the line.
 *
 * When to use: in core and in adapters, in place of `Effect.log*`.
 */
import type * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"

/** The fields of a line beside its message. docs/observability.md lists their names. */
export type Annotations = Readonly<Record<string, unknown>>

const writer =
  (write: (...parts: ReadonlyArray<unknown>) => Effect.Effect<void>) =>
  (
    message: string,
    annotations: Annotations = {},
    ...causes: ReadonlyArray<Cause.Cause<unknown>>
  ): Effect.Effect<void> =>
    Effect.catchDefect(Effect.annotateLogs(write(message, ...causes), annotations), () => Effect.void)

/**
 * Writes a line of the level `Info`: what is as it should be.
 *
 * @example
 * ```ts
 * import { Log } from "@requeue/core/port"
 * import * as Effect from "effect/Effect"
 *
 * Effect.runSync(Log.info("consuming again", { queue: "orders" }))
 * ```
 */
export const info = writer(Effect.logInfo)

/** Writes a line of the level `Warn`, as {@link info} does: what somebody should look at. */
export const warning = writer(Effect.logWarning)

/** Writes a line of the level `Error`, as {@link info} does: what does not work. */
export const error = writer(Effect.logError)

/** The fields of an error: `errorName`, `errorMessage`, and `errorStack` where it has a stack. */
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
