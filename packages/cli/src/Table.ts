/** Tables of text. */
import { stripVTControlCharacters } from "node:util"

/** The width of a terminal, and the titles of the columns that are cut to fit it. */
export interface Fit {
  /** The width in characters. */
  readonly width: number
  readonly cut: ReadonlyArray<string>
}

/** The smallest number of characters that a cut column keeps. */
const least = 20

const gap = "  "

const widthOf = (text: string): number => stripVTControlCharacters(text).length

/**
 * Returns the width of each column. The cut columns share the width that the other columns leave. If a cut column needs
 * less than its share, the others get the rest.
 */
const fitted = (
  header: ReadonlyArray<string>,
  widths: ReadonlyArray<number>,
  { cut, width }: Fit
): ReadonlyArray<number> => {
  const isCut = (column: number) => cut.includes(header[column]!)
  let left = widths.reduce((sum, each, column) => (isCut(column) ? sum : sum - each), width)
  left -= gap.length * (widths.length - 1)
  const all = [...widths]
  const columns = widths.flatMap((_, column) => (isCut(column) ? [column] : []))
  const narrowFirst = columns.toSorted((a, b) => widths[a]! - widths[b]!)
  for (const [index, column] of narrowFirst.entries()) {
    all[column] = Math.min(widths[column]!, Math.max(least, Math.floor(left / (narrowFirst.length - index))))
    left -= all[column]
  }
  return all
}

const shorten = (cell: string, width: number): string => (widthOf(cell) > width ? `${cell.slice(0, width - 1)}…` : cell)

/** Aligns the columns of a header and its rows. A cell that may be cut must have no colour. Default: no cell is cut. */
export const format = (
  header: ReadonlyArray<string>,
  rows: ReadonlyArray<ReadonlyArray<string>>,
  fit?: Fit
): string => {
  const all = [header, ...rows]
  const needed = header.map((_, column) => Math.max(...all.map((row) => widthOf(row[column] ?? ""))))
  const widths = fit === undefined ? needed : fitted(header, needed, fit)
  return all
    .map((row) =>
      row
        .map((cell, column) => shorten(cell, widths[column]!))
        .map((cell, column) => cell + " ".repeat(widths[column]! - widthOf(cell)))
        .join(gap)
        .trimEnd()
    )
    .join("\n")
}
