/**
 * The output of commands: results go to standard output, as text or as one JSON value, and progress to standard error.
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type { Writable } from "node:stream"
import { styleText } from "node:util"
import * as OutputFailed from "./OutputFailed.ts"
import { Process } from "./Process.ts"
import * as Printable from "./Printable.ts"
import * as Screen from "./Screen.ts"

type Style = Parameters<typeof styleText>[0]

/** An effect that ends when all output is written. */
type Written = Effect.Effect<void, OutputFailed.OutputFailed>

/**
 * The ways to print. Printing on standard output fails if the text cannot be written; errors of standard error are ignored.
 */
export interface Service {
  /** Whether the result is printed as JSON. */
  readonly json: boolean
  /** Whether anything was printed on standard output. */
  readonly hasTold: () => boolean
  /** Prints the result, once per command: the value as JSON with `--json`, else the text. */
  readonly result: (value: unknown, text: () => string) => Written
  /** Prints one line of many: the value as JSON with `--json`, else the text. */
  readonly line: (value: unknown, text: () => string) => Written
  /** Prints a text unchanged, with `--json` as well. */
  readonly raw: (text: string) => Written
  /** Whether results go to a terminal, and not as JSON. */
  readonly isScreen: boolean
  /** The width of that terminal in characters; `undefined` without a terminal, and where it does not report its width. */
  readonly width: number | undefined
  /** Replaces the text that was shown before. Call it only if `isScreen` is true. */
  readonly redraw: (text: string) => Written
  /** Prints a note about the result on standard error. */
  readonly note: (message: string) => Effect.Effect<void>
  /** Shows the progress of long work, in one line that is overwritten. Prints nothing without a terminal. */
  readonly progress: (text: string) => Effect.Effect<void>
  /** Removes the line of progress. */
  readonly done: Effect.Effect<void>
  /** Colours text for a terminal. Text in files and in JSON, and with NO_COLOR, has no colour. */
  readonly paint: (style: Style, text: string) => string
}

export class Output extends Context.Service<Output, Service>()("@requeue/cli/Output") {}

/** Converts infinity and maps for JSON. */
const plain = (_: string, value: unknown): unknown => {
  if (value === Number.POSITIVE_INFINITY) return "unlimited"
  return value instanceof Map ? Object.fromEntries(value) : value
}

/** Writes a text, and waits until it is written: a pipe loses buffered text when the program ends. */
const write = (stream: Writable, text: string): Written =>
  Effect.callback((resume) => {
    const end = (error: unknown) =>
      resume(
        error === undefined || error === null ? Effect.void : Effect.fail(OutputFailed.of("standard output", error))
      )
    stream.write(text, end)
  })

export const make = Effect.fnUntraced(function* (json: boolean) {
  const { stderr, stdout } = yield* Process
  const remark = (text: string) => Effect.ignore(write(stderr, text))
  const isTerminal = stderr.isTTY === true && !json
  let shown: string | undefined
  let told = false
  const tell = (text: string) =>
    Effect.suspend(() => {
      told = true
      return write(stdout, text)
    })
  const output: Service = {
    isScreen: stdout.isTTY === true && !json,
    width: stdout.isTTY === true && !json ? stdout.columns || undefined : undefined,
    redraw: (text) =>
      Effect.suspend(() => {
        const change = Screen.over(shown, text, stdout.columns ?? 0)
        shown = text
        return tell(change)
      }),
    json,
    hasTold: () => told,
    result: (value, text) => tell(`${json ? Printable.json(value, plain, 2) : text()}\n`),
    line: (value, text) => tell(`${json ? JSON.stringify(value, plain) : text()}\n`),
    raw: tell,
    note: (message) =>
      remark(`${json ? Printable.json({ note: message }) : `requeue: note: ${Printable.text(message)}`}\n`),
    progress: (text) => (isTerminal ? remark(`\r\u001b[K${text}`) : Effect.void),
    done: isTerminal ? remark("\r\u001b[K") : Effect.void,
    paint: (style, text) => (json ? text : styleText(style, text, { stream: stdout }))
  }
  return output
})
