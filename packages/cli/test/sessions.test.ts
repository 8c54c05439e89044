/**
 * The terminal sessions of the documentation say what the program says. With REQUEUE_RECORD=1 what it says is written into
 * the pages; put the `…` back where it differs from run to run.
 */
import { globSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import { type Address, open } from "./brokers.ts"
import { type Circumstances, main, requeue, spawned } from "./requeue.ts"
import { argumentsOf, matches, record, type Step, steps, turns } from "./Session.ts"

const root = fileURLToPath(new URL("../../..", import.meta.url))
/** Programs of a page find this package's dependencies from here. */
const home = fileURLToPath(new URL("../node_modules/.sessions", import.meta.url))

const pages = globSync(["docs/**/*.md", "packages/cli/*.md"], { cwd: root })
  .map((page) => ({ page, text: readFileSync(join(root, page), "utf8") }))
  .filter(({ text }) => steps(text).some(({ _tag }) => _tag === "Command"))

/** A command that needs a shell. */
const shell = (command: string, circumstances: Circumstances) => {
  const script = `exec 2>&1\nrequeue() { ${JSON.stringify(process.execPath)} ${JSON.stringify(main)} "$@"; }\n${command}`
  return spawned("sh", ["-c", script], circumstances)
}

const run = async (command: string, circumstances: Circumstances): Promise<ReadonlyArray<string>> => {
  const args = argumentsOf(command)
  const { both } = await (args === undefined ? shell(command, circumstances) : requeue(args, circumstances))
  return both === "" ? [] : both.replace(/\n$/, "").split("\n")
}

const isRecording = process.env["REQUEUE_RECORD"] === "1"

type Outputs = Map<number, ReadonlyArray<string>>

const perform = async (step: Step, cwd: string, env: Readonly<Record<string, string>>, recorded: Outputs) => {
  if (step._tag === "File") return writeFileSync(join(cwd, step.name), step.text)
  const actual = await run(step.command, { cwd, env })
  if (matches(step.output, actual)) return
  if (isRecording) return void recorded.set(step.line, actual)
  assert.fail(`$ ${step.command}\nsaid\n${actual.join("\n")}\n\nand not\n${step.output.join("\n")}`)
}

/** On a server that others use as well, some of it may be there already. */
const isShared = (name: string): boolean => process.env[`REQUEUE_${name.toUpperCase()}_URL`] !== undefined

const alone = pages
  .flatMap(({ page, text }) => turns(text).map((turn) => ({ page, text, ...turn, name: turn.each ?? "" })))
  .filter(({ brokers }) => !brokers.some(isShared))

describe.concurrent.each(alone)("$page $name", ({ brokers, each, page, text }) => {
  const recorded: Outputs = new Map()
  const opened: Array<Address> = []
  const env: Record<string, string> = {}
  let cwd = home

  beforeAll(async () => {
    mkdirSync(home, { recursive: true })
    cwd = mkdtempSync(join(home, "session-"))
    for (const name of brokers) {
      const broker = await open(name as Parameters<typeof open>[0])
      opened.push(broker)
      env[`${name.toUpperCase()}_URL`] = broker.url
      env[`${name.toUpperCase()}_MANAGEMENT_URL`] = broker.managementUrl ?? ""
      if (name === each) env["BROKER_URL"] = broker.url
    }
  })

  afterAll(async () => {
    if (recorded.size > 0) writeFileSync(join(root, page), record(text, recorded))
    rmSync(cwd, { recursive: true, force: true })
    for (const broker of opened) await broker.dispose()
  })

  it.each(steps(text).map((step) => ({ ...step, name: step._tag === "File" ? step.name : step.command })))(
    "line $line: $name",
    { concurrent: false },
    (step) => perform(step, cwd, env, recorded)
  )
})
