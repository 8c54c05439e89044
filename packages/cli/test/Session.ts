/**
 * Terminal sessions in Markdown pages, as tests: each command of a `console` block is run, and must say what the page
 * says.
 *
 * A line that starts with `$ ` is a command, what follows is its output, both streams in one. `…` in a line stands for
 * anything, a line of nothing else for any lines. A block with a file name behind its language is that file. All blocks of
 * a page run in one folder, in their order. `<!-- runs on: rabbitmq -->` in a page asks for a broker, whose address the
 * commands have as `RABBITMQ_URL`, and `RABBITMQ_MANAGEMENT_URL`. `<!-- runs on each of: rabbitmq, nsq -->` runs the page once
 * for each of them, whose address is `BROKER_URL` then.
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
      if (isOpen) found.push({ line: index + 1, language, file: words.find((word) => word.includes(".")), lines: [] })
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

/** What a page does, in its order. */
export const steps = (markdown: string): ReadonlyArray<Step> =>
  blocks(markdown).flatMap((block): ReadonlyArray<Step> => {
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

/** A time that a page is run. */
export interface Turn {
  /** The brokers that it asks for. */
  readonly brokers: ReadonlyArray<string>
  /** The name of the one whose address is `BROKER_URL`, where the page is run once for each of several. */
  readonly each: string | undefined
}

/** The times that a page is run. */
export const turns = (markdown: string): ReadonlyArray<Turn> => {
  const [, all] = /<!-- runs on each of: ([\w, ]+) -->/.exec(markdown) ?? []
  if (all !== undefined) return all.split(", ").map((each) => ({ brokers: [each], each }))
  const brokers = [...markdown.matchAll(/<!-- runs on: (\w+) -->/g)].map(([, name = ""]) => name)
  return [{ brokers, each: undefined }]
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
