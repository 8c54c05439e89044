/** Results: a file in which each chunk of a campaign is a line of JSON, with the fingerprint of the code that it ran. */
import { closeSync, existsSync, openSync, readFileSync, writeSync } from "node:fs"
import { OptionKind } from "@requeue/core/port"
import type * as Chunk from "./Chunk.ts"

/** An open file. */
export interface Results {
  /** The chunks that this code has run, by the key of their task. */
  readonly known: ReadonlyMap<string, Chunk.Result>
  /** The number of chunks of other code. They do not count. */
  readonly others: number
  readonly append: (result: Chunk.Result) => void
  readonly close: () => void
}

/** The unique name of a task. */
export const keyOf = ({ count, from, kinds }: Chunk.Task): string => `${from} ${count} ${kinds.join(" ")}`

interface Line extends Chunk.Result {
  /** The fingerprint. Lines of an earlier version have none. */
  readonly code?: string
}

/** A line's result; `undefined` for anything else, such as the torn line of a campaign that was killed. */
const read = (text: string): Line | undefined => {
  let line: unknown
  try {
    line = JSON.parse(text)
  } catch {
    return undefined
  }
  if (!OptionKind.isObject(line)) return undefined
  const { count, cpu, facts, failures, from, kinds, seeds, seen } = line as Partial<Line> // each is checked now
  const isResult =
    [count, cpu, facts, from].every(Number.isFinite) &&
    [failures, kinds].every(Array.isArray) &&
    [seeds, seen].every(OptionKind.isObject)
  return isResult ? (line as Line) : undefined // It was checked above.
}

/** Without a file, nothing is read or kept. */
export const none: Results = { known: new Map(), others: 0, append: () => {}, close: () => {} }

/** Opens a file, or creates it. */
export const open = (path: string, code: string): Results => {
  const text = existsSync(path) ? readFileSync(path, "utf8") : ""
  const lines = text.split("\n").flatMap((each) => read(each) ?? [])
  const mine = lines.filter((line) => line.code === code)
  const file = openSync(path, "a")
  if (text !== "" && !text.endsWith("\n")) writeSync(file, "\n")
  return {
    known: new Map(mine.map((line) => [keyOf(line), line])),
    others: lines.length - mine.length,
    append: (result) => void writeSync(file, `${JSON.stringify({ code, ...result })}\n`),
    close: () => closeSync(file)
  }
}
