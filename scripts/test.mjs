/**
 * `npm test`: the virtual tests of every package and, at the same time, those on real servers. Missing servers are installed
 * meanwhile. The last line counts all tests.
 */
import { spawn } from "node:child_process"
import { randomUUID } from "node:crypto"
import { once } from "node:events"
import { globSync, renameSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { leftovers } from "./leftovers.mjs"
import { folderOf, globs, servers } from "./levels.mjs"
import { failedLines, read, show, slowest, sum } from "./results.mjs"
import { root } from "./workspace.mjs"

const help = `npm test [-- PART ... [-t NAME]]

Runs the virtual tests of every package and, at the same time, the tests on real servers.

  PART      runs the files with that in their path alone, such as retry, or packages/adapter-nsq/test/real
  -t NAME   runs the tests with that in their name alone

Further options go to vitest. Other tests: npm run test:quick, npm run test:deep, npm run test:package; see CONTRIBUTING.md.`

const args = process.argv.slice(2)
const refused = args.find((arg) => /^(-w|--watch|--project|--config)\b/.test(arg))
/** The requested parts of paths; an option's value is none. */
const parts = args.filter(
  (arg, index) => !arg.startsWith("-") && !/^(-t|--testNamePattern)$/.test(args[index - 1] ?? "")
)
const isAsked = (file) =>
  parts.length === 0 || parts.some((part) => join(root, file).includes(part.replace(/^\.\//, "")))

// Every process of the tests inherits this mark: at the end, none may be left.
const run = randomUUID()
const env = { ...process.env, REQUEUE_TEST_RUN: run }

/** Runs the tests of a level, and prints nothing before `turn`. Resolves to its report when all is printed. */
const test = async (level, options, turn) => {
  // Another run in the same checkout has separate reports.
  const report = `test-results.${level}.${run}.json`
  const reporters = ["--reporter=default", "--reporter=json", `--outputFile.json=${report}`]
  const settings = ["run", "--config", "scripts/levels.config.mjs", "--project", level, "--passWithNoTests"]
  const child = spawn("vitest", [...settings, ...reporters, ...options, ...args], {
    cwd: root,
    env: { FORCE_COLOR: process.stdout.isTTY ? "1" : "0", ...env },
    shell: process.platform === "win32",
    stdio: ["ignore", "pipe", "pipe"]
  })
  const ended = once(child, "close")
  const held = []
  let write = (bytes) => held.push(bytes)
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (bytes) => write(bytes))
  await turn
  for (const bytes of held) process.stdout.write(bytes)
  write = (bytes) => process.stdout.write(bytes)
  const [code] = await ended
  const name = `test-results.${level}.json`
  const found = read(report)
  if (found.isThere) renameSync(join(root, report), join(root, name))
  if (code === 0 || found.counts.failed > 0) return { ...found, name }
  // Vitest does not report an error outside of tests.
  const failed = [`vitest ended with ${code}: see the errors above`]
  return { ...found, name, counts: sum([found.counts, { failed: 1 }]), failed }
}

/** Installs what these servers need. Resolves to the reasons why some are unavailable, by their names. */
const prepare = async (name) => {
  const program = "tools/brokers/src/cli.ts"
  const stdio = ["ignore", "pipe", "inherit"]
  const child = spawn(process.execPath, [program, "prepare", name], { cwd: root, env, stdio })
  let output = ""
  child.stdout.setEncoding("utf8").on("data", (text) => (output += text))
  await once(child, "close")
  return [...output.matchAll(/^(\w+): (.*)$/gm)].map(([, missing, reason]) => [missing, reason])
}

const main = async () => {
  const started = performance.now()
  const virtual = test("virtual", [], undefined)
  const files = globSync(globs.real, { cwd: root }).map((file) => file.replaceAll("\\", "/"))
  const needed = files.filter(isAsked).flatMap((file) => servers[folderOf(file)] ?? [])
  const missing = new Map((await Promise.all([...new Set(needed)].map(prepare))).flat())
  for (const [name, reason] of missing) console.error(`Tests that need ${name} are left out: ${reason}`)
  const isLeftOut = (file) => (servers[folderOf(file)] ?? []).some((name) => missing.has(name))
  const leftOut = files.filter((file) => isAsked(file) && isLeftOut(file))
  // Most of the time these tests wait, so all files run concurrently.
  const real =
    needed.length === 0
      ? []
      : [test("real", ["--maxWorkers=8", ...leftOut.flatMap((file) => ["--exclude", file])], virtual)]

  const tests = await Promise.all([virtual, ...real])
  const left = await leftovers(run)
  console.log(`\nThe slowest files:\n${slowest(tests, 10).join("\n")}\n`)
  const problems = [
    ...failedLines(tests),
    ...leftOut.map((file) => `left out: ${file}`),
    ...left.map(({ command, pid }) => `left behind: process ${pid}: ${command}`)
  ]
  for (const line of problems) console.log(line)
  // For scripts/ci-summary.mjs: the reports include neither processes that stay, nor errors outside of tests.
  writeFileSync(join(root, "test-results.problems.json"), JSON.stringify(problems))

  const all = sum(tests.map(({ counts }) => counts))
  if (all.passed + all.failed === 0) console.log("No test was run: no file or name matches.")
  const seconds = Math.round((performance.now() - started) / 1000)
  const failed = all.failed + (left.length > 0 ? 1 : 0)
  const note = leftOut.length > 0 ? `, ${leftOut.length} file${leftOut.length > 1 ? "s" : ""} left out` : ""
  console.log(`\n${show({ ...all, failed })}${note}, in ${Math.floor(seconds / 60)} min ${seconds % 60} s`)
  process.exitCode = failed === 0 && all.passed > 0 && leftOut.length === 0 ? 0 : 1
}

if (args.some((arg) => arg === "--help" || arg === "-h")) console.log(help)
else if (refused !== undefined) {
  console.error(`npm test has no ${refused}.\n\n${help}`)
  process.exitCode = 2
} else await main()
