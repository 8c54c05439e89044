/** Loggers that a program may pass to `connect`. */
import type * as Logger from "effect/Logger"
import * as OptionKind from "../options/OptionKind.ts"
import { isEffect, methodOf } from "./internal/loggerMethods.ts"

// Any, because each library has different signatures.
type Method = (...args: ReadonlyArray<any>) => unknown

/**
 * A logger of any library that has these methods, such as pino, winston or `console`. A logger with `child` and without
 * `log`, such as pino, is called as `warn(fields, message)`. A logger with both, such as winston, is called as `log({
 * level, message, ...fields })`. Any other logger, such as `console`, is called as `warn(message, fields)`.
 */
export type LoggerLike = Levels &
  ({ readonly info: Method; readonly log?: Method } | { readonly log: Method; readonly info?: Method })

/** The other methods of a logger. */
interface Levels {
  readonly error: Method
  readonly warn: Method
  readonly debug?: Method
  /** Makes a logger whose lines have these fields. It is called once for each queue. */
  readonly child?: Method
}

/** Where the lines of the log go: to standard error as JSON, nowhere, or to a logger. */
export type LogTarget = "json" | false | LoggerLike | Logger.Logger<unknown, unknown>

const isLogger = (value: unknown): boolean =>
  OptionKind.isObject(value) &&
  (isEffect(value) || ["info", "warn", "error"].every((level) => methodOf(value, level) !== undefined))

/** The kind of {@link LogTarget}. */
export const kind: OptionKind.OptionKind = {
  expected:
    '"json", false, or a logger with the methods info, warn and error, such as pino(), a winston logger or console',
  holds: (value) => value === "json" || value === false || isLogger(value),
  remedy: (value) =>
    typeof value === "function"
      ? "Call the function first, as in pino()"
      : value === true
        ? "Leave it out: lines go to standard error by default"
        : undefined
}
