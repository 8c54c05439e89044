/**
 * The terminal sessions of the documentation say what the program says. With REQUEUE_RECORD=1 what it says is written into
 * the pages; put the `…` back where it differs from run to run.
 */
import { type Broker, start } from "@requeue/brokers"
import { spawnSync } from "node:child_process"
import { globSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import { brokers, matches, record, type Step, steps } from "./Session.ts"

const root = fileURLToPath(new URL("../../..", import.meta.url))
const main = fileURLToPath(new URL("../dist/main.js", import.meta.url))
/** Programs of a page find this package's dependencies from here. */
const home = fileURLToPath(new URL("../node_modules/.sessions", import.meta.url))

const pages = globSync(["docs/**/*.md", "packages/cli/*.md"], { cwd: root })
  .map((page) => ({ page, text: readFileSync(join(root, page), "utf8") }))
  .filter(({ text }) => steps(text).some(({ _tag }) => _tag === "Command"))

/** Milliseconds that one command may take. */
const patience = 60_000

/** Both streams, in the order in which they were written. */
const run = (command: string, cwd: string, env: Readonly<Record<string, string>>): ReadonlyArray<string> => {
  const script = `exec 2>&1\nrequeue() { ${JSON.stringify(process.execPath)} ${JSON.stringify(main)} "$@"; }\n${command}`
  const { stdout } = spawnSync("sh", ["-c", script], {
    cwd,
    encoding: "utf8",
    env: { ...process.env, ...env },
    timeout: patience
  })
  return stdout === "" ? [] : stdout.replace(/\n$/, "").split("\n")
}

const isRecording = process.env["REQUEUE_RECORD"] === "1"

type Outputs = Map<number, ReadonlyArray<string>>

const perform = (step: Step, cwd: string, env: Readonly<Record<string, string>>, recorded: Outputs): void => {
  if (step._tag === "File") return writeFileSync(join(cwd, step.name), step.text)
  const actual = run(step.command, cwd, env)
  if (matches(step.output, actual)) return
  if (isRecording) return void recorded.set(step.line, actual)
  assert.fail(`$ ${step.command}\nsaid\n${actual.join("\n")}\n\nand not\n${step.output.join("\n")}`)
}

/** On a server that others use as well, some of it may be there already. */
const isShared = (name: string): boolean => process.env[`REQUEUE_${name.toUpperCase()}_URL`] !== undefined

const alone = pages.filter(({ text }) => !brokers(text).some(isShared))

describe.each(alone)("$page", ({ page, text }) => {
  const recorded: Outputs = new Map()
  const started: Array<Broker> = []
  const env: Record<string, string> = {}
  let cwd = home

  beforeAll(async () => {
    mkdirSync(home, { recursive: true })
    cwd = mkdtempSync(join(home, "session-"))
    for (const name of brokers(text)) {
      const broker = await start(name as Parameters<typeof start>[0])
      started.push(broker)
      env[`${name.toUpperCase()}_URL`] = broker.url
      env[`${name.toUpperCase()}_MANAGEMENT_URL`] = broker.managementUrl ?? ""
    }
  }, 120_000)

  afterAll(async () => {
    if (recorded.size > 0) writeFileSync(join(root, page), record(text, recorded))
    rmSync(cwd, { recursive: true, force: true })
    for (const broker of started) await broker.dispose()
  })

  it.each(steps(text).map((step) => ({ ...step, name: step._tag === "File" ? step.name : step.command })))(
    "line $line: $name",
    (step) => perform(step, cwd, env, recorded),
    patience
  )
})
