/** Formats a result as text. Pure. */
import type { CaseResult, Line, Result } from "./results.ts"
import type { Spread } from "./statistics.ts"

export const digits = (value: number): string => {
  const size = Math.abs(value)
  if (size >= 1000) return Math.round(value).toLocaleString("en")
  return value.toFixed(size >= 100 ? 0 : size >= 10 ? 1 : 2)
}

const micros = (value: number): string => (Math.abs(value) < 1 ? `${digits(value * 1000)} ns` : `${digits(value)} us`)

export const ratioOf = ({ max, median, min }: Spread): string =>
  `${median.toFixed(2)} (${min.toFixed(2)} to ${max.toFixed(2)})`

/** `baseline` is the first line. */
export type Column = readonly [title: string, cell: (line: Line, baseline: Line) => string]

/** The columns of every case. */
export const columns: ReadonlyArray<Column> = [
  ["", ({ name }) => name],
  ["CPU/message", ({ cpuMicroseconds }) => micros(cpuMicroseconds.median)],
  ["x baseline (min to max)", ({ cpuRatio }) => ratioOf(cpuRatio)],
  ["more", ({ cpuMicroseconds }, baseline) => micros(cpuMicroseconds.median - baseline.cpuMicroseconds.median)],
  ["messages/s", ({ messagesPerSecond }) => digits(messagesPerSecond.median)],
  ["x baseline", ({ speedRatio }) => speedRatio.median.toFixed(2)],
  ["broker CPU", ({ brokerCpuRatio }) => brokerCpuRatio?.median.toFixed(2) ?? ""],
  ["resident", ({ residentPeakMegabytes }) => `${digits(residentPeakMegabytes)} MB`],
  ["heap peak", ({ heapPeakMegabytes }) => `${digits(heapPeakMegabytes)} MB`]
]

/** The first column is text, the others are numbers. */
const align = (rows: ReadonlyArray<ReadonlyArray<string>>): ReadonlyArray<string> => {
  const widths = rows[0]!.map((_, column) => Math.max(...rows.map((row) => row[column]!.length)))
  return rows.map((row) =>
    row.map((cell, n) => (n === 0 ? cell.padEnd(widths[n]!) : cell.padStart(widths[n]!))).join("  ")
  )
}

const figuresOf = (line: Line): ReadonlyArray<string> => {
  const figures = Object.entries(line.figures).map(([name, value]) => `${name} ${digits(value)}`)
  return figures.length === 0 ? [] : [`  ${line.name}: ${figures.join(", ")}`]
}

export const caseText = (result: CaseResult): string =>
  [
    `${result.suite}: ${result.case} (${result.messages.toLocaleString("en")} messages, ${result.lines[0]!.readings.length} rounds)`,
    ...align([
      columns.map(([title]) => title),
      ...result.lines.map((line) => columns.map(([, cell]) => cell(line, result.lines[0]!)))
    ]),
    ...result.lines.flatMap(figuresOf),
    ...result.failed.map(({ error, name }) => `${name} could not: ${error}`),
    ...(result.isDisturbed
      ? [
          `The control is off: the baseline against itself gave ${ratioOf(result.control)}. This run does not count: run it again on a quiet machine.`
        ]
      : []),
    ...result.beyond.map((name) => `${name} is not within its limit of CPU.`)
  ].join("\n")

export const environmentText = ({ environment }: Pick<Result, "environment">): string =>
  Object.entries(environment)
    .map(([name, value]) => `${name}: ${value}`)
    .join("\n")
