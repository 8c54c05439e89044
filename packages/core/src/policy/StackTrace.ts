/**
 * Stack traces: where an error was thrown, and where the errors that caused it were. They are bounded, and reading one never
 * throws, whatever was thrown.
 */
import type { ErrorSummary } from "../message/Metadata.ts"
import * as StackText from "../message/StackText.ts"
import { chainLimit, isError, isRecord, read, summarizeCause } from "./internal/thrown.ts"

/** One error of a trace. Its `stack` has the frames of this error only. */
export interface Part extends ErrorSummary {
  /** The relation of this error to the thrown error, for example `caused by`; empty for the thrown error itself. */
  readonly label: string
}

/** Reads the errors of a trace, the thrown one first. Only the first call reads, which makes the engine format the stacks. */
export type Trace = () => ReadonlyArray<Part>

/** The most characters of a trace. */
export const limit = 4096

/** The most errors of a trace, frames of an error, and characters of a line and of a stack that is read. */
const limits = { errors: chainLimit, frames: 20, line: 256, read: 16_384 }

/**
 * Frames that are left out at the end of a stack: those of Node, of this library, of Effect, and of the engine itself. They
 * called the program's code, and are the same in every stack.
 */
const noise = /[\\/]node_modules[\\/](?:@requeue|effect)[\\/]|[( ]node:|\((?:native|<anonymous>)\)$/

/** The name of the function that calls handlers: the frames from there on are left out, wherever this library lies. */
const caller = "requeueCallsHandler"

/** Returns the stack trace of a thrown value. */
export const of = (error: unknown): Trace => {
  let known: ReadonlyArray<Part> | undefined
  return () => (known ??= partsOf(error))
}

/** Where a summary keeps the function that makes its stack, and then the stack. */
const source = Symbol("stack")

interface Traced extends ErrorSummary {
  readonly [source]: { stack: string | undefined | (() => string | undefined) }
}

/** Shared: V8 keeps what an accessor of one object refers to, here a message and its error, until its next full collection. */
const lazyStack: PropertyDescriptor & ThisType<Traced> = {
  enumerable: true,
  configurable: true,
  get() {
    const { stack } = this[source]
    return typeof stack === "function" ? (this[source].stack = stack()) : stack
  },
  // A redactor may change the error that it gets.
  set(stack: string | undefined) {
    this[source].stack = stack
  }
}

/** Returns the summary of an error with a stack, which `makeStack` makes when it is first read. */
export const traced = ({ message, name }: ErrorSummary, makeStack: () => string | undefined): ErrorSummary =>
  Object.defineProperties({ name, message }, { stack: lazyStack, [source]: { value: { stack: makeStack } } })

/** Returns the summary as plain data: the stack is read now, and the error is not kept in memory. */
export const plain = ({ message, name, stack }: ErrorSummary): ErrorSummary =>
  stack === undefined ? { name, message } : { name, message, stack }

/**
 * Returns a trace as text: the frames of the thrown error, then each cause with its frames. `undefined` if the trace is
 * empty.
 */
export const render = (parts: ReadonlyArray<Part>): string | undefined => {
  const lines = parts.flatMap(({ label, message, name, stack = "" }) => [
    ...(label === ""
      ? []
      : [line(`${label}: ${name}${message === "" ? "" : `: ${message}`}`.replaceAll(/\s*\n\s*/g, " "))]),
    ...framed(stack)
  ])
  return StackText.shorten(lines.join("\n"), (text) => text.length <= limit)
}

const line = (text: string): string => (text.length <= limits.line ? text : `${text.slice(0, limits.line - 1)}…`)

const framed = (stack: string): ReadonlyArray<string> => {
  const frames = stack.split("\n", limits.frames + 1).filter((frame) => frame.trim() !== "")
  return frames.slice(0, limits.frames).map((frame) => line(`    ${frame.trim()}`))
}

const partsOf = (thrown: unknown): ReadonlyArray<Part> => {
  const parts: Array<Part> = []
  const seen = new Set<unknown>()
  const visit = (error: unknown, label: string): void => {
    if (parts.length >= limits.errors || seen.has(error)) return
    if (isRecord(error)) seen.add(error)
    const summary = summarizeCause(error)
    parts.push({ label, ...summary, stack: isRecord(error) ? framesOf(error, summary.message) : "" })
    if (!isRecord(error)) return
    const prefix = label === "" ? "" : `${label}, `
    const cause = read(error, "cause")
    // As in Java, each line names the cause of the error above it.
    const causeLabel = label.endsWith("caused by") ? label : `${prefix}caused by`
    if (cause !== undefined && cause !== null) visit(cause, causeLabel)
    const errors = read(error, "errors")
    const count = countOf(errors)
    for (let index = 0; index < Math.min(count, limits.errors); index++) {
      const each = read(Object(errors), String(index))
      if (isRecord(each) && isError(each)) visit(each, `${prefix}error ${index + 1} of ${count}`)
    }
  }
  visit(thrown, "")
  return parts
}

const countOf = (errors: unknown): number => {
  try {
    return Array.isArray(errors) ? errors.length : 0
  } catch {
    return 0
  }
}

/** Returns the frames of an error that are code of the program. */
const framesOf = (error: object, message: string): string => {
  const stack = read(error, "stack")
  if (typeof stack !== "string") return ""
  const begin = beginOf(stack, message)
  const lines = stack.slice(begin, begin + limits.read).split("\n")
  const handled = lines.findIndex((frame) => frame.includes(caller))
  let end = handled === -1 ? lines.length : handled
  while (end > 0 && (lines[end - 1]!.trim() === "" || noise.test(lines[end - 1]!.slice(0, limits.line * 4)))) end--
  return lines.slice(0, end).join("\n")
}

/**
 * Returns where the frames begin: after the name and the message, which may have changed since the stack was made. A text of
 * several lines without them, and without frames as V8 writes them, is shown whole.
 */
const beginOf = (stack: string, message: string): number => {
  const begin = headEnd(stack, message)
  if (begin !== undefined) return begin
  const first = stack.slice(0, limits.read).search(/^[ \t]+at /m)
  return first === -1 && !stack.includes("\n") ? stack.length : Math.max(0, first)
}

/** The end of the name and message that begin a stack, where this is the message; `undefined` where it was changed since. */
const headEnd = (stack: string, message: string): number | undefined => {
  const begin = stack.slice(0, limits.line).search(": ") + 2
  const end = begin + message.length
  const isHead = stack.startsWith(message, begin) && (end === stack.length || stack[end] === "\n")
  return isHead ? end : undefined
}
