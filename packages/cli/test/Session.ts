/**
 * Terminal sessions in Markdown pages, as tests: each command of a `console` block is run, and must say what the page
 * says.
 *
 * A line that starts with `$ ` is a command, what follows is its output, both streams in one. `…` in a line stands for
 * anything, a line of nothing else for any lines. A block with a file name behind its language is that file. All blocks of
 * a page run in one folder, in their order. `<!-- runs on: rabbitmq -->` in a page asks for a broker, whose address the
 * commands have as `RABBITMQ_URL`, and `RABBITMQ_MANAGEMENT_URL`. `<!-- runs on each of: rabbitmq, nsq -->` runs the page once
 * for each of them, whose name is `REQUEUE_BROKER` then; a block with names of brokers behind its language is for those alone.
 *
 * `<!-- set up by: packages/cli/test/sessions/setup/drill.md -->` runs the blocks of that page first, in the same folder.
 *
 * `<!-- differs: times, ages, operations -->` in a page says what of its outputs is not compared, because it differs from run
 * to run. All else must be as it stands there.
 */

export type Step =
  | { readonly _tag: "File"; readonly line: number; readonly name: string; readonly text: string }
  | {
      readonly _tag: "Command"
      readonly line: number
      readonly command: string
      readonly output: ReadonlyArray<string>
    }

interface Block {
  readonly line: number
  readonly language: string
  readonly file: string | undefined
  /** The brokers that it is for; none for all. */
  readonly brokers: ReadonlyArray<string>
  readonly lines: ReadonlyArray<string>
}

const blocks = (markdown: string): ReadonlyArray<Block> => {
  const found: Array<Block & { readonly lines: Array<string> }> = []
  let isOpen = false
  for (const [index, line] of markdown.split("\n").entries()) {
    const [fence, info = ""] = /^```(.*)$/.exec(line) ?? []
    if (fence === undefined) {
      if (isOpen) found.at(-1)!.lines.push(line)
    } else {
      isOpen = !isOpen
      const [language = "", ...words] = info.trim().split(/\s+/)
      const [file] = words.filter((word) => word.includes("."))
      const brokers = words.filter((word) => word !== file)
      if (isOpen) found.push({ line: index + 1, language, file, brokers, lines: [] })
    }
  }
  return found
}

const commands = ({ line, lines }: Block): ReadonlyArray<Step> => {
  const found: Array<{ _tag: "Command"; line: number; command: string; output: Array<string> }> = []
  for (const [index, text] of lines.entries()) {
    const last = found.at(-1)
    if (text.startsWith("$ "))
      found.push({ _tag: "Command", line: line + index + 1, command: text.slice(2), output: [] })
    else if (last?.command.endsWith("\\") === true && last.output.length === 0) last.command += `\n${text}`
    else last?.output.push(text)
  }
  return found
}

/** What a page does, in its order: for one of several brokers, or in all of its blocks. */
export const steps = (markdown: string, each?: string): ReadonlyArray<Step> =>
  blocks(markdown).flatMap((block): ReadonlyArray<Step> => {
    if (each !== undefined && block.brokers.length > 0 && !block.brokers.includes(each)) return []
    if (block.language === "console") return commands(block)
    if (block.file === undefined) return []
    return [{ _tag: "File", line: block.line, name: block.file, text: `${block.lines.join("\n")}\n` }]
  })

/** The arguments of a command that is `requeue` and words in which a shell has nothing to do but take their quotes off. */
export const argumentsOf = (command: string): ReadonlyArray<string> | undefined => {
  if (!/^requeue( +('[^']*'|[\w@%+=:,./-])+)*$/.test(command)) return undefined
  const [, ...words] = command.match(/('[^']*'|\S)+/g) ?? []
  return words.map((word) => word.replaceAll("'", ""))
}

/** The page whose blocks are run before those of this page, by its path in the repository. */
export const setupOf = (markdown: string): string | undefined => /<!-- set up by: (\S+) -->/.exec(markdown)?.[1]

/** A time that a page is run. */
export interface Turn {
  /** The brokers that it asks for. */
  readonly brokers: ReadonlyArray<string>
  /** The one that is `REQUEUE_BROKER`, where the page is run once for each of several. */
  readonly each: string | undefined
}

/** The times that a page is run. */
export const turns = (markdown: string): ReadonlyArray<Turn> => {
  const [, all] = /<!-- runs on each of: ([\w, ]+) -->/.exec(markdown) ?? []
  if (all !== undefined) return all.split(", ").map((each) => ({ brokers: [each], each }))
  const brokers = [...markdown.matchAll(/<!-- runs on: (\w+) -->/g)].map(([, name = ""]) => name)
  return [{ brokers, each: undefined }]
}

/** What may differ from run to run. Ages are cells of a table: between two spaces, or at its end. */
const differing: Readonly<Record<string, readonly [RegExp, string]>> = {
  times: [/\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z/g, "<time>"],
  ages: [/(?<= {2})\d+(\.\d+)?(ms|s|m)( \d+s)?(?= {2}|$)/g, "<age>"],
  operations: [/(?<=--operation )[\da-f]{12}\b/g, "<operation>"]
}

/** Puts words in the place of what differs from run to run, as the page says; the widths of columns go with them. */
export const alike = (markdown: string): ((lines: ReadonlyArray<string>) => ReadonlyArray<string>) => {
  const [, names] = /<!-- differs: ([\w, ]+) -->/.exec(markdown) ?? []
  if (names === undefined) return (lines) => lines
  const all = names.split(", ").map((name) => {
    const one = differing[name]
    if (one === undefined) throw new Error(`differs: has no ${name}, but ${Object.keys(differing).join(", ")}`)
    return one
  })
  return (lines) =>
    lines.map((line) =>
      all
        .reduce((text, [what, word]) => text.replaceAll(what, word), line)
        .replaceAll(/ {2,}/g, "  ")
        .trimEnd()
    )
}

const literally = (text: string): string => text.replaceAll(/[\\^$.*+?()[\]{}|/]/g, String.raw`\$&`)

const pattern = (line: string): RegExp => new RegExp(`^${line.trimEnd().split("…").map(literally).join(".*")}$`)

/** True when the output is what the page says. */
export const matches = (expected: ReadonlyArray<string>, actual: ReadonlyArray<string>): boolean => {
  const [first, ...rest] = expected
  if (first === undefined) return actual.length === 0
  if (first.trim() === "…") return actual.some((_, index) => matches(rest, actual.slice(index))) || matches(rest, [])
  const [line, ...others] = actual
  return line !== undefined && pattern(first).test(line.trimEnd()) && matches(rest, others)
}

/** The page with the outputs of these commands, by the line of the command, in place of what it says. */
export const record = (markdown: string, outputs: ReadonlyMap<number, ReadonlyArray<string>>): string => {
  const written: Array<string> = []
  const all = steps(markdown).flatMap((step) => (step._tag === "Command" ? [step] : []))
  let skipped = 0
  for (const [index, text] of markdown.split("\n").entries()) {
    if (skipped > 0) skipped--
    else written.push(text)
    const step = all.find(({ command, line }) => line + command.split("\n").length - 1 === index + 1)
    const output = step && outputs.get(step.line)
    if (step === undefined || output === undefined) continue
    written.push(...output)
    skipped = step.output.length
  }
  return written.join("\n")
}
