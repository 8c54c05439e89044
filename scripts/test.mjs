/**
 * `npm test`: the virtual tests of every package and, at the same time, those on real servers; `npm test -- retry` those of
 * files with that in their path. Servers that are missing are installed meanwhile. The last line counts all tests.
 */
import { spawn } from "node:child_process"
import { randomUUID } from "node:crypto"
import { once } from "node:events"
import { globSync } from "node:fs"
import { leftovers } from "./leftovers.mjs"
import { folderOf, globs, servers } from "./levels.mjs"
import { failedLines, forget, read, show, slowest, sum } from "./results.mjs"
import { root } from "./workspace.mjs"

const shell = process.platform === "win32"
// Every process that the tests start inherits this mark: at the end, none of them may be left.
const run = randomUUID()
const env = { ...process.env, REQUEUE_TEST_RUN: run }

const levels = ["virtual", "real"]
const report = (level) => `test-results.${level}.json`

/** Runs the tests of a level, and prints nothing before `turn`. Resolves when all is printed. */
const test = async (level, options, turn) => {
  const reporters = ["--reporter=default", "--reporter=json", `--outputFile.json=${report(level)}`]
  const settings = ["run", "--config", "scripts/levels.config.mjs", "--project", level, "--passWithNoTests"]
  const child = spawn("vitest", [...settings, ...reporters, ...options, ...process.argv.slice(2)], {
    cwd: root,
    env: { FORCE_COLOR: process.stdout.isTTY ? "1" : "0", ...env },
    shell,
    stdio: ["ignore", "pipe", "pipe"]
  })
  const ended = once(child, "close")
  const held = []
  let write = (bytes) => held.push(bytes)
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (bytes) => write(bytes))
  await turn
  for (const bytes of held) process.stdout.write(bytes)
  write = (bytes) => process.stdout.write(bytes)
  return ended
}

/** Installs what the servers need. Resolves to the reasons why some cannot be had, by their names. */
const prepare = async () => {
  const program = "tools/brokers/src/cli.ts"
  const child = spawn(process.execPath, [program, "prepare"], { cwd: root, env, stdio: ["ignore", "pipe", "inherit"] })
  let output = ""
  child.stdout.setEncoding("utf8").on("data", (text) => (output += text))
  await once(child, "close")
  return new Map([...output.matchAll(/^(\w+): (.*)$/gm)].map(([, name, reason]) => [name, reason]))
}

const started = performance.now()
forget(levels.map(report))

const virtual = test("virtual", [], undefined)
const missing = await prepare()
for (const [name, reason] of missing) console.error(`Tests that need ${name} are left out: ${reason}`)
const isLeftOut = (folder) => servers[folder].some((name) => missing.has(name))
const leftOut = globSync(globs.real, { cwd: root }).filter((file) => isLeftOut(folderOf(file.replaceAll("\\", "/"))))
// Most of the time these tests wait, so all files run side by side.
await test("real", ["--maxWorkers=8", ...leftOut.flatMap((file) => ["--exclude", file])], virtual)

const tests = levels.map((level) => read(report(level)))
const left = await leftovers(run)
console.log(`\nThe slowest files:\n${slowest(tests, 10).join("\n")}\n`)
for (const line of failedLines(tests)) console.log(line)
for (const file of leftOut) console.log(`left out: ${file}`)

const all = sum(tests.map(({ counts }) => counts))
const seconds = Math.round((performance.now() - started) / 1000)
const failed = all.failed + (left.length > 0 ? 1 : 0)
const note = leftOut.length > 0 ? `, ${leftOut.length} files left out` : ""
console.log(`\n${show({ ...all, failed })}${note}, in ${Math.floor(seconds / 60)} min ${seconds % 60} s`)
process.exitCode = failed === 0 && all.passed > 0 && leftOut.length === 0 ? 0 : 1
