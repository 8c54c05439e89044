/** The journal of a run whose broker outlives it: what a killed run published and delivered counts in the books of the next one. */
import { appendFileSync, existsSync, readFileSync, rmSync } from "node:fs"
import { type Options, UsageError } from "./options.ts"

type Line =
  | Pick<Options, "seed" | "count">
  /** The broker has confirmed the first messages, up to this number. */
  | { readonly published: number }
  /** The receiver answers 2xx to this message. */
  | { readonly accepted: string }

/** The books of earlier runs. */
export interface Earlier {
  readonly published: number
  /** One id for each 2xx. */
  readonly accepted: ReadonlyArray<string>
}

export interface Journal {
  /** The books of earlier runs; `undefined` if there was none, or the last one left no message. */
  readonly earlier: Earlier | undefined
  readonly write: (line: Line) => void
  /** Removes the journal, because no message is left. */
  readonly remove: () => void
}

/** Reads the lines. The last line of a killed process may be incomplete. */
const read = (path: string): ReadonlyArray<Line> =>
  readFileSync(path, "utf8")
    .split("\n")
    .filter((text) => text.endsWith("}"))
    .map((text): Line => JSON.parse(text))

const earlierOf = (lines: ReadonlyArray<Line>): Earlier => ({
  published: Math.max(0, ...lines.map((line) => ("published" in line ? line.published : 0))),
  accepted: lines.flatMap((line) => ("accepted" in line ? [line.accepted] : []))
})

const insistOnSame = (path: string, lines: ReadonlyArray<Line>, { count, seed }: Options): void => {
  const before = lines.find((line) => "seed" in line)
  if (before === undefined || (before.seed === seed && before.count === count)) return
  throw new UsageError(
    `${path} has an unfinished run: continue it with --seed ${before.seed} --count ${before.count}, or delete it and its queues`
  )
}

/** Opens the journal at a path. Without a path, nothing is written. */
export const openJournal = (path: string | undefined, options: Options): Journal => {
  if (path === undefined) return { earlier: undefined, write: () => {}, remove: () => {} }
  const lines = existsSync(path) ? read(path) : []
  insistOnSame(path, lines, options)
  const write = (line: Line): void => appendFileSync(path, `\n${JSON.stringify(line)}`)
  write({ seed: options.seed, count: options.count })
  return {
    earlier: lines.length === 0 ? undefined : earlierOf(lines),
    write,
    remove: () => rmSync(path)
  }
}
