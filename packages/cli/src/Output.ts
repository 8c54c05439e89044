/**
 * What a command says: its result to standard output, as text or as one JSON value, and progress to standard error.
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type { Writable } from "node:stream"
import { styleText } from "node:util"
import { Process } from "./Process.ts"
import * as Screen from "./Screen.ts"

type Style = Parameters<typeof styleText>[0]

export interface Service {
  /** True when the result is wanted as JSON. */
  readonly json: boolean
  /** Prints a result, once per command: the value when JSON is wanted, else the text. */
  readonly result: (value: unknown, text: () => string) => Effect.Effect<void>
  /** A line of many, as long as the command runs: one JSON value per line, or text. */
  readonly line: (value: unknown, text: () => string) => Effect.Effect<void>
  /** True when results go to a terminal, and not as JSON. */
  readonly isScreen: boolean
  /** Shows a text where the one before was shown. Only for a screen. */
  readonly redraw: (text: string) => Effect.Effect<void>
  /** Says how far long work has come: only to a terminal, and in one line that is overwritten. */
  readonly progress: (text: string) => Effect.Effect<void>
  /** Ends the line of progress. */
  readonly done: Effect.Effect<void>
  /** Colours text where colours are shown: not in a file, not in JSON, not with NO_COLOR. */
  readonly paint: (style: Style, text: string) => string
}

export class Output extends Context.Service<Output, Service>()("@requeue/cli/Output") {}

/** Sets, infinities and bytes have no JSON form of their own. */
const plain = (_: string, value: unknown): unknown => {
  if (value === Number.POSITIVE_INFINITY) return "unlimited"
  return value instanceof Map ? Object.fromEntries(value) : value
}

const write = (stream: Writable, text: string): Effect.Effect<void> =>
  // Waits until it is written: what is left when a program ends is lost on a pipe.
  Effect.callback((resume) => void stream.write(text, () => resume(Effect.void)))

export const make = Effect.fnUntraced(function* (json: boolean) {
  const { stderr, stdout } = yield* Process
  const isTerminal = stderr.isTTY === true && !json
  let shown: string | undefined
  const output: Service = {
    isScreen: stdout.isTTY === true && !json,
    redraw: (text) =>
      Effect.suspend(() => {
        const change = Screen.over(shown, text, stdout.columns ?? 0)
        shown = text
        return write(stdout, change)
      }),
    json,
    result: (value, text) => write(stdout, `${json ? JSON.stringify(value, plain, 2) : text()}\n`),
    line: (value, text) => write(stdout, `${json ? JSON.stringify(value, plain) : text()}\n`),
    progress: (text) => (isTerminal ? write(stderr, `\r\u001b[K${text}`) : Effect.void),
    done: isTerminal ? write(stderr, "\r\u001b[K") : Effect.void,
    paint: (style, text) => (json ? text : styleText(style, text, { stream: stdout }))
  }
  return output
})
