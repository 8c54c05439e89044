/** docs/errors.md has a section for each error of the sources, and for nothing else; each section has all its parts. */
import assert from "node:assert/strict"
import { globSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { test } from "node:test"
import { root } from "./workspace.mjs"

const read = (file) => readFileSync(join(root, file), "utf8")
const page = read("docs/errors.md")

/** Errors that users never see: they become another one, or an exit code. */
const internal = ["NotSent", "SyntaxProblem", "UnreadableAnswer", "Problem", "Trouble"]
/** BrokerError is a section with its reasons; RangeError is JavaScript's. */
const others = ["RangeError"]

/** Packages whose errors are for authors of adapters and models. */
const sources = globSync("packages/*/src/**/*.ts", { cwd: root }).filter(
  (file) => !/^packages\/(conformance|simulation)\//.test(file)
)
const classes = sources.flatMap((file) =>
  [...read(file).matchAll(/^(?:export )?class (\w+) extends (?:Data\.TaggedError\(|Error\b)/gm)].map(([, name]) => name)
)
const union = (file, name) => {
  const [, text] = new RegExp(`export type ${name} =([^\\n]*(?:\\n  \\|[^\\n]*)*)`).exec(read(file)) ?? []
  return [...text.matchAll(/"([^"]+)"/g)].map(([, word]) => word)
}
const reasons = [
  ...union("packages/core/src/port/BrokerError.ts", "Reason"),
  ...union("packages/core/src/message/Metadata.ts", "Reason")
]
const sections = page.split(/^#+ /m).flatMap((section) => {
  const [, name] = /^`([^`]+)`\n/.exec(section) ?? []
  return name === undefined ? [] : [[name, section]]
})

test("each error has its section, and each section its error", () => {
  const wanted = [
    ...classes.filter((name) => !internal.includes(name) && name !== "BrokerError"),
    ...reasons,
    ...others
  ]
  assert.ok(classes.length > 20 && reasons.length > 15, "errors are found")
  assert.deepEqual(sections.map(([name]) => name).toSorted(), wanted.toSorted())
})

test("what is left out is there", () => {
  for (const name of internal) assert.ok(classes.includes(name), name)
})

for (const [name, section] of sections) {
  test(`${name}: cause, outcome and fix`, () => {
    for (const part of ["Cause", "Outcome", "Fix"])
      assert.match(section, new RegExp(`^- \\*\\*${part}:\\*\\* \\S`, "m"))
  })
}

test("the exit codes are those of the command line", () => {
  const [, told = ""] = page.split("### Exit codes\n")
  const listed = [...told.split("\n##")[0].matchAll(/^\| (\d+) \|/gm)].map(([, code]) => Number(code))
  const table = read("packages/cli/src/ExitCode.ts")
  const codes = [...table.matchAll(/^(?:export )?const \w+ = (\d+)$/gm)].map(([, code]) => Number(code))
  assert.deepEqual(listed, codes)
})
