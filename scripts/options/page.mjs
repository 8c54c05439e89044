/** The page of options, made of the sources. */
import { constants, read, want } from "./source.mjs"
import { groups } from "./tables.mjs"

const found = []
/** What is wrong with the sources, after the page was made. */
export const problems = () => [...found]

const intro = `# Options

Every option, from where the code reads it. This page is made by \`npm run options\`, and a check fails when it is stale: do
not edit it.

A duration is text such as \`"10 seconds"\` or \`"5 minutes"\`, or a number of milliseconds. Options of brokers are plain
numbers, in milliseconds where they are times. Every option may be left out, but for those that must be given. One that is
unknown, of another kind or out of its range is refused at once, with the nearest right name. So is one that is not a value
of the options object itself: one that it inherits, or a getter, which may answer something else at the next look.
`

const units = { millisecond: 1, second: 1000, minute: 60_000, hour: 3_600_000, day: 86_400_000 }

/** A value as docstrings write it. */
const valueOf = (text) => {
  const [, amount, unit] = /^([\d.]+) (millisecond|second|minute|hour|day)s?$/.exec(text) ?? []
  if (unit !== undefined) return Number(amount) * units[unit]
  const bare = text.replaceAll(/^[`"]+|[`"]+$/g, "").replaceAll(",", "")
  return /^[\d.]+$/.test(bare) ? Number(bare) : bare
}

const asText = (value) => (typeof value === "number" ? value.toLocaleString("en-US") : `\`${value}\``)

/** A docstring apart from what it says of the default. */
export const apart = (doc) => {
  const [whole, said] = /(?:;|(?<=[.)])|^)\s*[Dd]efault:?\s(.*?)\.(?=\s|$)/.exec(`${doc}`) ?? []
  return whole === undefined
    ? { meaning: doc, said: undefined }
    : { meaning: doc.replace(whole, whole.startsWith(";") ? "." : ""), said }
}

/** Whether a docstring says of a default what the code has. It may say more: why, or what for. */
export const agree = (said, given) => {
  const [first] = (said ?? "nothing").split(/,? (?:for|which|that|with|of|in)\b|[,;]\s/)
  return String(valueOf(first.trim())) === String(given)
}

const isPlain = (value) => ["number", "string", "boolean"].includes(typeof value)

const row = (file, name, { doc, type }, kind, given) => {
  if (doc === undefined || doc === "") {
    found.push(`${file}: ${name} has no docstring, so that its hover is empty`)
    return undefined
  }
  const { meaning, said } = apart(doc)
  if (isPlain(given) && !agree(said, given)) {
    found.push(`${file}: the docstring of ${name} says that its default is ${said ?? "nothing"}; the code has ${given}`)
  }
  const expected = kind?.expected ?? type.replaceAll(/\s+/g, " ")
  const what =
    kind?.expected === undefined
      ? `\`${expected}\``
      : expected.replaceAll(/\b\d{4,}\b/g, (digits) => Number(digits).toLocaleString("en-US"))
  return [`\`${name}\``, what, said ?? (isPlain(given) ? asText(given) : "must be given"), meaning.trim()]
    .map((cell) => cell.replaceAll("|", "\\|").replaceAll(/\{@link ([\w.]+)\}/g, "`$1`"))
    .join(" | ")
}

/** The constants that a table needs, by the file that has them. */
const neededBy = ({ defaults, file, kinds, kindsIn = file }) =>
  [
    [kindsIn, kinds],
    [file, defaults]
  ].filter(([, name]) => name !== undefined)

const table = async (given) => {
  const { code = [], defaults, file, kinds, more, title, type } = given
  const members = new Map([type].flat().flatMap((each) => [...read(file).members(each)]))
  const values = {}
  for (const [where, name] of neededBy(given)) Object.assign(values, await constants(where, [name]))
  for (const name of Object.keys(values[kinds] ?? {})) {
    if (!members.has(name)) found.push(`${file}: ${name} of ${kinds} is no member of ${type}, and has no row`)
  }
  if (members.size === 0) found.push(`${file}: the table of ${type} is empty`)
  const files = new Set([file, ...[...members.values()].map((each) => each.file), ...code])
  const inCode = new Map([...files].flatMap((each) => [...read(each).defaults()]))
  const rows = [...members]
    .map(([name, member]) => {
      const kind = values[kinds]?.[name]
      const inUse = defaults === undefined ? inCode.get(name) : values[defaults][name]
      return row(member.file, name, member, kind === true ? undefined : kind, inUse)
    })
    .filter((each) => each !== undefined)
  const link = more === undefined ? "" : `\n[More about it](../${more}).\n`
  return `### ${title}\n${link}\n| option | kind and range | default | meaning |\n| --- | --- | --- | --- |\n${rows
    .map((each) => `| ${each} |`)
    .join("\n")}\n`
}

export const page = async () => {
  const parts = [intro]
  for (const [file, name] of groups.flatMap(({ tables }) => tables.flatMap(neededBy))) want(file, [name])
  for (const { tables, title } of groups) {
    parts.push(`## ${title}\n`)
    for (const each of tables) parts.push(await table(each))
  }
  return parts.join("\n")
}
