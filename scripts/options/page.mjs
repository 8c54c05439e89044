/** The page of options, made from the sources. */
import { constants, read, want } from "./source.mjs"
import { groups } from "./tables.mjs"

const found = []
/** The errors in the sources, after the page was made. */
export const problems = () => [...found]

const intro = `# Options

\`npm run options\` makes this page from the sources; do not edit it.

A duration is text such as \`"10 seconds"\`, or a number of milliseconds. Leave an option out to get its default. Requeue refuses
an unknown or wrong option at once, and suggests the nearest right name.
`

const units = { ms: 1, millisecond: 1, second: 1000, minute: 60_000, hour: 3_600_000, day: 86_400_000 }
const letters = { s: "second", m: "minute", h: "hour", d: "day" }
const amounts = /(\d[\d.,]*) ?(ms|millisecond|second|minute|hour|day|[smhd])?s?(?!\w)/g

/** A value as docstrings write it. */
const valueOf = (text) => {
  const [, amount, unit] = /^([\d.]+) (ms|millisecond|second|minute|hour|day)s?$/.exec(text) ?? []
  if (unit !== undefined) return Number(amount) * units[unit]
  const bare = text.replaceAll(/^[`"]+|[`"]+$/g, "").replaceAll(",", "")
  return /^[\d.]+$/.test(bare) ? Number(bare) : bare
}

const asText = (value) => (typeof value === "number" ? value.toLocaleString("en-US") : `\`${value}\``)

/** A docstring without its default. */
export const apart = (doc) => {
  const [whole, said] = /(?:;|(?<=[.)])|^)\s*[Dd]efault:?\s(.*?)\.(?=\s|$)/.exec(`${doc}`) ?? []
  return whole === undefined
    ? { meaning: doc, said: undefined }
    : { meaning: doc.replace(whole, whole.startsWith(";") ? "." : ""), said }
}

/** A docstring without its range. */
export const withoutRange = (doc) => {
  const [whole, range] = /(?:^|\s)Range: (.*?)(?:; a number means milliseconds)?\.(?=\s|$)/.exec(doc) ?? []
  return whole === undefined ? { meaning: doc, range } : { meaning: doc.replace(whole, "").trim(), range }
}

/** The numbers of a range, in milliseconds for durations. "1 to 20 seconds" has one unit for both. */
const numbersOf = (text) => {
  const found = [...text.matchAll(amounts)].map(([, digits, unit]) => [Number(digits.replaceAll(",", "")), unit])
  return found.map(([amount, unit = found.at(-1)[1]]) => amount * (units[letters[unit] ?? unit] ?? 1))
}

/** Whether a docstring states the range that the code checks. Ranges without numbers in the code agree. */
export const sameRange = (range, expected) => {
  const [stated, checked] = [numbersOf(range ?? ""), numbersOf(expected)]
  return checked.length === 0 || JSON.stringify(stated) === JSON.stringify(checked)
}

/** A kind as a cell of the table, without what its meaning repeats. */
const short = (expected) =>
  expected
    .replaceAll(/\b\d{4,}\b/g, (digits) => Number(digits).toLocaleString("en-US"))
    .replace(/^(?:a duration|a whole number) from /, "")
    .replace(/^the result of .*$/, "an object")
    .replace(/(?<!^one),? (?:such as|by|with|of) .*$/, "")
    .replace(/^one of (.*)$/, (_, words) => words.replaceAll(/[^\s,]+/g, (word) => `\`${word.replaceAll('"', "")}\``))
    .replace(/true(?:, | or )false/, "`true`, `false`")
    .replace("text that is not empty", "text")

/** "1 to 10" as "1–10". */
const dashed = (range) => range.replaceAll(/(\d(?: [a-z]+)?) to (?=\d)/g, "$1–")

/** Whether a docstring states the code's default. It may say more: why, or what for. */
export const agree = (said, given) => {
  const [first] = (said ?? "nothing").split(/,? (?:for|which|that|with|of|in)\b|[,;]\s/)
  return String(valueOf(first.trim())) === String(given)
}

const isPlain = (value) => ["number", "string", "boolean"].includes(typeof value)

/** A type as a cell of the table; empty if only its docstring describes the values. */
const typed = (type) =>
  /^string\b/.test(type) ? "text" : type.includes("=>") || type.endsWith("Provider") ? "a function" : ""

const row = (file, name, { doc, type }, kind, given) => {
  if (doc === undefined || doc === "") {
    found.push(`${file}: ${name}has no docstring, so its hover is empty`)
    return undefined
  }
  const { meaning: all, said } = apart(doc)
  const { meaning, range } = withoutRange(all)
  if (isPlain(given) && !agree(said, given)) {
    found.push(`${file}: the docstring of ${name} says that its default is ${said ?? "nothing"}; the code has ${given}`)
  }
  const expected = kind?.expected
  if (range !== undefined && expected !== undefined && !sameRange(range, expected)) {
    found.push(`${file}: the docstring of ${name} says that its range is ${range}; the code has ${expected}`)
  }
  const values = dashed(range ?? (expected === undefined ? typed(type) : short(expected)))
  return [`\`${name}\``, values, said ?? (isPlain(given) ? asText(given) : "required"), meaning]
    .map((cell) => cell.replaceAll("|", "\\|").replaceAll(/\{@link ([\w.]+)\}/g, "`$1`"))
    .join(" | ")
}

/** The constants that a table needs, by their file. */
const neededBy = ({ defaults, file, kinds, kindsIn = file }) =>
  [
    [kindsIn, kinds],
    [file, defaults]
  ].filter(([, name]) => name !== undefined)

const membersOf = ({ file, type }) => new Map([type].flat().flatMap((each) => [...read(file).members(each)]))

/** The address of a heading on the page. */
const anchor = (title) =>
  title
    .toLowerCase()
    .replaceAll(/[^\w\s-]/g, "")
    .replaceAll(" ", "-")

/** Members that a table shares with an earlier one, which has their rows. */
const sharedWith = (members, like) => {
  const others = like === undefined ? new Map() : membersOf(like)
  return [...members].filter(([name, { doc, file }]) => {
    const other = others.get(name)
    return other?.file === file && other.doc === doc
  })
}

const table = async (given) => {
  const { code = [], defaults, file, kinds, like, more, title, type } = given
  const members = membersOf(given)
  const shared = new Map(sharedWith(members, like))
  const values = {}
  for (const [where, name] of neededBy(given)) Object.assign(values, await constants(where, [name]))
  for (const name of Object.keys(values[kinds] ?? {})) {
    if (!members.has(name)) found.push(`${file}: ${name} of ${kinds} is no member of ${type}, and has no row`)
  }
  if (members.size === 0) found.push(`${file}: the table of ${type} is empty`)
  const files = new Set([file, ...[...members.values()].map((each) => each.file), ...code])
  const inCode = new Map([...files].flatMap((each) => [...read(each).defaults()]))
  const rows = [...members]
    .filter(([name]) => !shared.has(name))
    .map(([name, member]) => {
      const kind = values[kinds]?.[name]
      const inUse = defaults === undefined ? inCode.get(name) : values[defaults][name]
      return row(member.file, name, member, kind === true ? undefined : kind, inUse)
    })
    .filter((each) => each !== undefined)
  const link = more === undefined ? "" : `\nMore on its [page](${more}).\n`
  const names = [...shared.keys()].map((name) => `\`${name}\``).join(", ")
  const also = names === "" ? "" : `\n${names}: as [above](#${anchor(like.title)}).\n`
  const lines = ["option | values | default | meaning", "--- | --- | --- | ---", ...rows]
    .map((each) => `${each}\n`)
    .join("")
  return `### ${title}\n${link}${also}${rows.length === 0 ? "" : `\n${lines}`}`
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
