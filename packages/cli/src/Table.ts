/** Tables of text. */
import { stripVTControlCharacters } from "node:util"

const width = (text: string): number => stripVTControlCharacters(text).length

/** Aligns the columns of a header and its rows. */
export const format = (header: ReadonlyArray<string>, rows: ReadonlyArray<ReadonlyArray<string>>): string => {
  const all = [header, ...rows]
  const widths = header.map((_, column) => Math.max(...all.map((row) => width(row[column] ?? ""))))
  return all
    .map((row) =>
      row
        .map((cell, column) => cell + " ".repeat(widths[column]! - width(cell)))
        .join("  ")
        .trimEnd()
    )
    .join("\n")
}
