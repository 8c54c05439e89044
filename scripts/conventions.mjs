/**
 * Checks the conventions of the sources: docstrings, reasons for casts, the length of functions, names; and the words of the
 * docs. `--counts` prints figures by package instead. `--root DIR` reads another checkout.
 */
import { globSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { parseArgs } from "node:util"
import { inventory } from "./conventions/inventory.mjs"
import { fieldWord, globals, oldWords } from "./conventions/names.mjs"

/** Lines that a function may have without a reason. */
const longest = 80

/** A docstring with only tags does not describe anything. */
const isSilent = ({ doc }) => !/^[^@\s]/.test(doc ?? "")
const beginsWithWhat = ({ text }) => /^What\s/.test(text)

/** By kind of item: the items of a rule, and its message. */
const rules = [
  ["entries", ({ files }) => files === 0, ({ key }) => `exports "${key}" leads to no source: name a file that src has`],
  [
    "entries",
    ({ internal }) => internal !== undefined,
    ({ internal, key }) => `exports "${key}" lets programs import ${internal}: close its folder with null`
  ],
  [
    "exports",
    isSilent,
    ({ name }) => `${name === "*" ? "module" : `export ${name}`} without docstring: say what it is`
  ],
  ["options", isSilent, ({ name }) => `option ${name} without docstring: say what it does, its unit, its default`],
  [
    "casts",
    (it) => !it.isExplained,
    () => 'cast or any without a reason: end the line with a // comment, or begin the one above with "Cast, because"'
  ],
  [
    "functions",
    ({ isExplained, lines }) => lines > longest && !isExplained,
    ({ lines }) => `function of ${lines} lines: split it, or begin the comment above with "Long, because"`
  ],
  [
    "names",
    ({ kind, name }) => kind === "type" && globals.has(name),
    ({ name }) => `type ${name} has the name of a global: say which ${name}`
  ],
  ["names", (it) => fieldWord(it) !== undefined, (it) => `${it.kind} ${it.name}: the field's word is ${fieldWord(it)}`],
  ["docstrings", beginsWithWhat, () => 'docstring begins with "What": begin with what the thing is']
]

/** Returns the violations, as lines to print. */
export const check = (found) =>
  rules
    .flatMap(([kind, isWrong, tell]) => found[kind].filter(isWrong).map((it) => ({ ...it, text: tell(it) })))
    .toSorted((a, b) => (a.file < b.file ? -1 : a.file > b.file ? 1 : a.line - b.line))
    .map(({ file, line, text }) => `${file}:${line} ${text}`)

const columns = {
  "functions > 60": ["functions", ({ lines }) => lines > 60],
  "> 80": ["functions", ({ lines }) => lines > 80],
  "> 100": ["functions", ({ lines }) => lines > 100],
  exports: ["exports", () => true],
  "without docstring": ["exports", isSilent],
  "with @example": ["exports", ({ doc }) => /^@example\b/m.test(doc ?? "")],
  "casts, any": ["casts", () => true],
  "without reason": ["casts", ({ isExplained }) => !isExplained],
  '"What ..."': ["docstrings", beginsWithWhat],
  options: ["options", () => true],
  undocumented: ["options", isSilent]
}

/** The figures of each package and of all, by the columns' titles. */
export const count = (found) => {
  const packageOf = ({ file }) => file.split("/").slice(0, 2).join("/")
  const row = (isIn) =>
    Object.fromEntries(
      Object.entries(columns).map(([title, [kind, is]]) => [
        title,
        found[kind].filter((it) => isIn(it) && is(it)).length
      ])
    )
  const folders = [...new Set(found.names.map(packageOf))]
  const rows = folders.map((folder) => [folder, row((it) => packageOf(it) === folder)])
  return Object.fromEntries([...rows, ["total", row(() => true)]])
}

if (import.meta.main) {
  const { counts, root } = parseArgs({
    options: { counts: { type: "boolean", default: false }, root: { type: "string", default: "." } }
  }).values
  const sources = globSync("{packages,apps,tools}/*/src/**/*.{ts,mts}", { cwd: root })
  const files = [...sources, ...globSync("packages/*/package.json", { cwd: root })]
  const read = (file) => [file.replaceAll("\\", "/"), readFileSync(join(root, file), "utf8")]
  const texts = files.toSorted().map(read)
  const found = inventory(Object.fromEntries(texts))
  const pages = globSync(["*.md", "docs/**/*.md", "project/**/*.md", "packages/*/README.md"], { cwd: root }).map(read)
  if (counts) console.table(count(found))
  else {
    const words = [...texts, ...pages].flatMap(([file, text]) => oldWords(file, text))
    const lines = [...check(found), ...words.map(({ file, line, text }) => `${file}:${line} ${text}`)]
    for (const line of lines) console.error(line)
    console.log(`conventions: ${sources.length} files, ${lines.length} violations`)
    process.exitCode = lines.length === 0 && sources.length > 0 ? 0 : 1
  }
}
