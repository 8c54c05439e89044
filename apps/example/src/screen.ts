/** Shows progress: a block that is redrawn on a terminal, else a line now and then. */
import { styleText } from "node:util"

type Style = "bold" | "dim" | "red" | "green" | "yellow" | "blue" | "magenta" | "cyan"

/** Colors a text, or leaves it unchanged without a terminal or with NO_COLOR. */
export type Paint = (style: Style, text: string) => string

export interface Screen {
  readonly paint: Paint
  /** Shows the state: on a terminal it replaces the previous one, else it adds a line every 2 seconds, and always the `last`. */
  readonly draw: (block: () => ReadonlyArray<string>, line: () => string, last: boolean) => void
  /** Writes below the last state. */
  readonly print: (text: string) => void
}

/** The columns and rows that a terminal needs for the block; a smaller one gets lines. */
const [columns, rows] = [80, 22]

/** Milliseconds between two lines. */
const lineInterval = 2000

export const makeScreen = (stream: NodeJS.WriteStream): Screen => {
  const terminal = stream.isTTY && process.env["TERM"] !== "dumb"
  let height = 0
  let lastLine = Number.NEGATIVE_INFINITY
  const redraws = (): boolean => terminal && stream.columns >= columns && stream.rows >= rows

  return {
    paint: (style, text) => styleText(style, text, { stream }),
    draw: (block, line, last) => {
      if (redraws()) {
        const lines = block()
        const up = height > 0 ? `\u001b[${height}A` : ""
        // Each line is cleared as it is written: clearing all of them first would flicker.
        stream.write(`${up}${lines.map((text) => `\u001b[2K${text}\n`).join("")}\u001b[J`)
        height = lines.length
      } else if (last || performance.now() - lastLine >= lineInterval) {
        stream.write(`${line()}\n`)
        lastLine = performance.now()
      }
    },
    print: (text) => {
      stream.write(`${text}\n`)
      height = 0
    }
  }
}
