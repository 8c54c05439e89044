/** Text that is redrawn in the same place on a terminal. */
import { stripVTControlCharacters } from "node:util"

/** Returns the rows that a text takes on a terminal. `columns` is 0 if the terminal does not report its width. */
const rows = (text: string, columns: number): number => {
  const width = columns > 0 ? columns : Number.POSITIVE_INFINITY
  const lines = text.split("\n").map((line) => stripVTControlCharacters(line).length)
  return lines.reduce((sum, length) => sum + Math.max(1, Math.ceil(length / width)), 0)
}

/** Returns the text that replaces `before` with `next` on a terminal. */
export const over = (before: string | undefined, next: string, columns: number): string =>
  `${before === undefined ? "" : `\u001b[${rows(before, columns)}F\u001b[J`}${next}\n`
