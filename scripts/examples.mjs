/**
 * Compiles and runs every example of the documentation: the `ts` blocks of docstrings and of Markdown pages, each as a separate
 * program.
 *
 * A `// => value` after an expression on one line is an assertion: it must be reached, and deeply equal. A block marked
 * `ts no-run` is only compiled.
 */
import { spawn, spawnSync } from "node:child_process"
import { cpSync, existsSync, globSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { packages, root } from "./workspace.mjs"
import "./kept.mjs"

const pages = [
  "packages/*/src/**/*.ts",
  "*.md",
  "docs/**/*.md",
  "project/**/*.md",
  "benchmarks/*.md",
  "packages/*/*.md",
  "apps/*/*.md"
]

/** Milliseconds that one example may run. */
const patience = 20_000

/** The examples of a file: its lines, whether it runs, and the number of the line before its first. */
export const extract = (file, text) => {
  const examples = []
  let open
  for (const [index, raw] of text.split("\n").entries()) {
    const inDoc = /^\s*\* ?(.*)$/.exec(raw)
    const line = file.endsWith(".md") ? raw : inDoc?.[1]
    if (line === undefined) continue
    const fence = /^\s*```\s*(.*)$/.exec(line)?.[1]
    if (fence === undefined) open?.lines?.push(line)
    else if (open === undefined) {
      const [language, ...flags] = fence.split(/\s+/)
      open = language === "ts" ? { file, line: index + 1, run: !flags.includes("no-run"), lines: [] } : {}
    } else {
      if (open.lines !== undefined) examples.push(open)
      open = undefined
    }
  }
  if (open !== undefined) throw new Error(`${file}: a \`\`\` has no end`)
  return examples
}

/** The program of an example with its assertions made calls, and their number; lines keep their numbers. */
export const instrument = ({ lines }) => {
  const expected = []
  const body = lines.map((line, index) => {
    const [, before, expression, value] = /^(\s*;?(?:return |const \w+ = )?)(.*\S)\s*\/\/ => (.+)$/.exec(line) ?? []
    if (value === undefined) return line
    expected.push(index + 1)
    return `${before}__check((${expression}), (${value}), ${index + 1})`
  })
  const [first = "", ...rest] = body
  const prelude = `import { check as __check, expect as __expect } from "../check.mjs"; __expect(${JSON.stringify(expected)});`
  return { code: [`${prelude} ${first}`, ...rest].join("\n"), assertions: expected.length }
}

/** What an example's program imports: it compares, and reports at the end what was not reached. */
const checker = `import { deepStrictEqual } from "node:assert/strict"
const missing = new Set()
const fail = (line, text) => {
  console.error("@" + line + ": " + text)
  process.exitCode = 1
}
export const expect = (lines) => lines.forEach((line) => missing.add(line))
export const check = (actual, expected, line) => {
  missing.delete(line)
  try {
    deepStrictEqual(actual, expected)
  } catch (error) {
    fail(line, error.message)
  }
  return actual
}
process.on("exit", () => missing.forEach((line) => fail(line, "the assertion was never reached")))
`

const home = join(root, ".examples")

/** A node_modules with the packages of the workspace and their dependencies. */
const install = () => {
  const modules = join(home, "node_modules")
  const link = (name, target) => {
    const path = join(modules, name)
    if (existsSync(path) || !existsSync(target)) return
    mkdirSync(dirname(path), { recursive: true })
    symlinkSync(target, path, "junction")
  }
  for (const { folder, manifest } of packages) link(manifest.name, join(root, folder))
  for (const { folder, manifest } of packages) {
    for (const name of Object.keys({ ...manifest.dependencies, ...manifest.devDependencies })) {
      link(name, join(root, folder, "node_modules", name))
    }
  }
}

const configuration = {
  extends: "../tsconfig.base.json",
  compilerOptions: {
    noEmit: true,
    composite: false,
    declaration: false,
    declarationMap: false,
    rewriteRelativeImportExtensions: false,
    // An example shows how to make a value, and may not use it.
    noUnusedLocals: false,
    noUnusedParameters: false,
    moduleDetection: "force",
    // Those of Nest.
    experimentalDecorators: true,
    erasableSyntaxOnly: false
  },
  include: ["types"]
}

/** Translates positions in generated programs into positions in their pages. */
const locate = (text, programs) =>
  text.replaceAll(/(?:file:\/\/)?[^\s'"()]*?(?:types|run)[\\/](\d+)\.ts[(:](\d+)[,:]?\d*\)?/g, (place, index, line) => {
    const example = programs[Number(index)]
    return example === undefined ? place : `${example.file}:${example.line + Number(line)}`
  })

const compile = (programs) => {
  const { status, stdout } = spawnSync("tsc", ["-p", home, "--pretty", "false"], {
    cwd: home,
    encoding: "utf8",
    shell: process.platform === "win32"
  })
  return status === 0 ? [] : [locate(stdout, programs).trim()]
}

const run = async (program, index, programs) => {
  const child = spawn(process.execPath, [join("run", `${index}.ts`)], { cwd: home, timeout: patience })
  let output = ""
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (chunk) => (output += chunk))
  const [code, signal] = await new Promise((resolve) => child.on("close", (...end) => resolve(end)))
  if (code === 0) return []
  const ended = signal === null ? "" : `\nended by ${signal}, after ${patience / 1000} s at most`
  const found = output.replaceAll(/^@(\d+): /gm, (_, line) => `${program.file}:${program.line + Number(line)}: `)
  return [`${program.file}:${program.line}: the example failed\n${locate(found, programs).trim()}${ended}`]
}

/** Two at a time: most of them wait for timers. */
const runAll = async (programs) => {
  const failures = []
  const queue = [...programs.entries()].filter(([, { run }]) => run)
  const work = async () => {
    for (let next = queue.shift(); next !== undefined; next = queue.shift()) {
      failures.push(...(await run(next[1], next[0], programs)))
    }
  }
  await Promise.all([work(), work()])
  return failures
}

const main = async (only) => {
  const files = globSync(pages, { cwd: root, exclude: ["**/node_modules"] }).map((file) => file.replaceAll("\\", "/"))
  const wanted = files.filter((file) => only.length === 0 || only.some((part) => file.includes(part))).toSorted()
  const programs = wanted.flatMap((file) => extract(file, readFileSync(join(root, file), "utf8")))
  rmSync(home, { recursive: true, force: true })
  for (const folder of ["types", "run"]) mkdirSync(join(home, folder), { recursive: true })
  install()
  cpSync(join(root, "package.json"), join(home, "package.json"))
  writeFileSync(join(home, "tsconfig.json"), JSON.stringify(configuration))
  writeFileSync(join(home, "check.mjs"), checker)
  let compared = 0
  for (const [index, program] of programs.entries()) {
    const { assertions, code } = instrument(program)
    compared += program.run ? assertions : 0
    writeFileSync(join(home, "types", `${index}.ts`), program.lines.join("\n"))
    writeFileSync(join(home, "run", `${index}.ts`), code)
  }
  const failures = [...compile(programs), ...(await runAll(programs))]
  for (const failure of failures) console.error(`${failure}\n`)
  const ran = programs.filter(({ run }) => run).length
  console.log(
    `${programs.length} examples compiled, ${ran} run, ${compared} values compared, ${failures.length} failures`
  )
  if (failures.length === 0) rmSync(home, { recursive: true })
  process.exitCode = failures.length > 0 || programs.length === 0 ? 1 : 0
}

if (process.argv[1]?.endsWith("examples.mjs")) await main(process.argv.slice(2))
