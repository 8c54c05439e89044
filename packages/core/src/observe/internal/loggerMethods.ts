/** The methods of loggers of any library, found by their names. */
import type * as Logger from "effect/Logger"

/**
 * The methods of a level, the best one first. `silly` and `warning`, `crit` are those of winston's levels `npm` and `syslog`; Nest's
 * logger has `log` in place of `info`.
 */
const methods: Readonly<Record<string, ReadonlyArray<string>>> = {
  trace: ["trace", "silly", "debug"],
  debug: ["debug"],
  info: ["info", "log"],
  warn: ["warn", "warning"],
  error: ["error"],
  fatal: ["fatal", "crit", "error"]
}

/** Whether an object has a method of this name. */
export const has = (logger: object, name: string): boolean => typeof Reflect.get(logger, name) === "function"

/** Returns the method of a logger for a level in lower case. Skips the `trace` of `console`, which prints a stack. */
export const methodOf = (logger: object, level: string): string | undefined =>
  (methods[level] ?? []).find((name) => has(logger, name) && (name !== "trace" || has(logger, "child")))

/** Whether it is a logger of Effect. `Logger.isLogger` would load more than all of this library. */
export const isEffect = (logger: object): logger is Logger.Logger<unknown, unknown> => "~effect/Logger" in logger
