/** Makes the loggers of Effect that write log lines to the target that a program without Effect has chosen. */
import type * as Logger from "effect/Logger"
import * as Pipeable from "effect/Pipeable"
import * as Thenable from "../../message/Thenable.ts"
import { printable } from "../../options/quoted.ts"
import { summarize } from "../../policy/Failure.ts"
import * as Log from "../../port/Log.ts"
import * as BoundedMap from "../../runtime/BoundedMap.ts"
import type { LoggerLike, LogTarget } from "../LoggerLike.ts"
import * as LogFmt from "./logFmt.ts"
import { has, isEffect, methodOf } from "./loggerMethods.ts"

type Write = (options: Logger.Options<unknown>) => unknown

/** A logger that never throws. The first error of what writes its lines is a line on standard error. */
class Contained extends Pipeable.Class implements Logger.Logger<unknown, void> {
  readonly "~effect/Logger" = "~effect/Logger"
  readonly #write: Write
  #hasFailed = false

  constructor(write: Write) {
    super()
    this.#write = write
  }

  log(options: Logger.Options<unknown>): void {
    const fail = (error: unknown) => this.#fail(options, error)
    try {
      Thenable.onRejected(this.#write(options), fail)
    } catch (error) {
      fail(error)
    }
  }

  #fail(options: Logger.Options<unknown>, error: unknown): void {
    if (this.#hasFailed) return
    this.#hasFailed = true
    const { message, name } = summarize(error)
    const told = `the logger of connect failed with ${name}: ${message}; its further errors are not shown. The line was:`
    print(LogFmt.line({ ...options, logLevel: "Error", message: [told, options.message].flat() }))
  }
}

/** Programs without Effect replace no service, and `effect/Console` is a module more to load. */
const print = (line: string): void => {
  // oxlint-disable-next-line no-console
  console.error(printable(line))
}

/** The most queues whose child loggers are kept. */
const maxChildren = 1000

/** The child of a logger for a queue; `undefined` where it makes none that can write. */
const childOf = (logger: LoggerLike, queue: string): LoggerLike | undefined => {
  const child: unknown = logger.child!({ queue })
  if (typeof child !== "object" || child === null) return undefined
  const isLogger = ["info", "warn", "error"].every((level) => methodOf(child, level))
  return isLogger ? (child as LoggerLike) : undefined // It has the methods.
}

/** Writes lines by the methods of a logger, those about a queue by a child of it where it can make one. */
const writerOf = (logger: LoggerLike): Write => {
  const children = BoundedMap.make<LoggerLike>(maxChildren)
  const isParent = has(logger, "child")
  const takesRecord = isParent && has(logger, "log")
  // A console takes the message for a format: the one of the platform, a test runner's, or one that somebody has made.
  const takesFormat = has(logger, "table")
  const write = (to: LoggerLike, level: string, message: string, fields: Log.Annotations): unknown => {
    const method = methodOf(to, level)
    if (method === undefined) return undefined
    if (takesRecord) return to.log!({ ...fields, level: method, message })
    const args = isParent ? [fields, message] : [takesFormat ? message.replaceAll("%", "%%") : message, fields]
    return Reflect.get(to, method).apply(to, args)
  }
  return (options) => {
    const { fields, level, message } = Log.toLine(options)
    const { queue, ...others } = fields
    if (!isParent || typeof queue !== "string") return write(logger, level, message, fields)
    const child = children.get(queue) ?? childOf(logger, queue)
    if (child === undefined) return write(logger, level, message, fields)
    children.set(queue, child)
    return write(child, level, message, others)
  }
}

/** The loggers for a target. Default: lines of `key=value` pairs on standard error. */
export const of = (target: LogTarget | undefined): ReadonlySet<Logger.Logger<unknown, void>> => {
  if (target === false) return new Set()
  if (target === undefined) return new Set([new Contained((options) => print(LogFmt.line(options)))])
  if (target === "json") return new Set([new Contained((options) => print(Log.toJson(options)))])
  return new Set([new Contained(isEffect(target) ? (options) => target.log(options) : writerOf(target))])
}
