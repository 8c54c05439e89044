/**
 * The terminal sessions of the documentation, and of `test/deep/sessions`, show what the program prints. With REQUEUE_RECORD=1
 * its output is written into the pages; put the `…` back where it differs from run to run. Pages with `differs` need none.
 */
import { globSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { delimiter, join } from "node:path"
import { fileURLToPath } from "node:url"
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import { type Address, open } from "./brokers.ts"
import { quoted, requeue, spawned } from "../requeue.ts"
import { alike, argumentsOf, matches, record, type Step, steps, turns } from "../Session.ts"

const root = fileURLToPath(new URL("../../../..", import.meta.url))
/** Programs of a page find this package's dependencies from here. */
const home = fileURLToPath(new URL("../../node_modules/.sessions", import.meta.url))

interface Page {
  readonly path: string
  readonly text: string
  readonly alike: ReturnType<typeof alike>
  /** What its commands said otherwise than it has. */
  readonly recorded: Outputs
}

const pages = globSync(["docs/**/*.md", "packages/cli/*.md", "packages/cli/test/deep/sessions/*.md"], { cwd: root })
  .map((path) => ({ path, text: readFileSync(join(root, path), "utf8") }))
  .filter(({ text }) => steps(text).some(({ _tag }) => _tag === "Command"))
  .map(({ path, text }): Page => ({ path, text, alike: alike(text), recorded: new Map() }))

interface Session {
  readonly cwd: string
  readonly env: Readonly<Record<string, string>>
  readonly isDrill: boolean
}

/** A command that needs a shell, which finds the program on its path: so `$!` is the program, and a signal reaches it. */
const shell = (command: string, { cwd, env }: Session) => {
  const path = `${join(home, ".bin")}${delimiter}${process.env["PATH"]}`
  return spawned("sh", ["-c", `exec 2>&1\n${command}`], { cwd, env: { ...env, PATH: path } })
}

/** A page that is run on each of several brokers is a drill: its commands are processes, as users have them. */
const run = async (command: string, session: Session): Promise<ReadonlyArray<string>> => {
  const args = session.isDrill ? undefined : argumentsOf(command)
  const { both } = await (args === undefined ? shell(command, session) : requeue(args, session))
  return both === "" ? [] : both.replace(/\n$/, "").split("\n")
}

const isRecording = process.env["REQUEUE_RECORD"] === "1"

type Outputs = Map<number, ReadonlyArray<string>>

const perform = async (step: Step, session: Session, page: Page) => {
  if (step._tag === "File") return writeFileSync(join(session.cwd, step.name), step.text)
  const actual = await run(step.command, session)
  if (matches(page.alike(step.output), page.alike(actual))) return
  if (isRecording) return void page.recorded.set(step.line, actual)
  assert.fail(`$ ${step.command}\nsaid\n${actual.join("\n")}\n\nand not\n${step.output.join("\n")}`)
}

/** On a server that others use as well, some of it may be there already. */
const isShared = (name: string): boolean => process.env[`REQUEUE_${name.toUpperCase()}_URL`] !== undefined

const alone = pages
  .flatMap((page) => turns(page.text).map((turn) => ({ page, path: page.path, ...turn, name: turn.each ?? "" })))
  .filter(({ brokers }) => !brokers.some(isShared))

/** True for the turn of a page that is the journey of `npm test`. */
export const isJourney = (path: string, broker: string): boolean => path === "docs/drill.md" && broker === "nsq"

/** Registers the sessions of these pages as tests; of a page that runs on each of several brokers, those on these brokers. */
export const replay = (isAsked: (path: string, broker: string) => boolean): void => {
  beforeAll(() => {
    mkdirSync(join(home, ".bin"), { recursive: true })
    writeFileSync(join(home, ".bin", "requeue"), `#!/bin/sh\nexec ${quoted} "$@"\n`, { mode: 0o755 })
  })

  describe.concurrent.each(alone.filter(({ name, path }) => isAsked(path, name)))(
    "$path $name",
    ({ brokers, each, page }) => {
      const opened: Array<Address> = []
      const env: Record<string, string> = each === undefined ? {} : { REQUEUE_BROKER: each }
      let cwd = home

      beforeAll(async () => {
        cwd = mkdtempSync(join(home, "session-"))
        for (const name of brokers.filter((broker) => broker !== "memory")) {
          const broker = await open(name as Parameters<typeof open>[0])
          opened.push(broker)
          env[`${name.toUpperCase()}_URL`] = broker.url
          env[`${name.toUpperCase()}_MANAGEMENT_URL`] = broker.managementUrl ?? ""
        }
      })

      afterAll(async () => {
        // Each turn of a page adds to what is recorded of it.
        if (page.recorded.size > 0) writeFileSync(join(root, page.path), record(page.text, page.recorded))
        rmSync(cwd, { recursive: true, force: true })
        for (const broker of opened) await broker.dispose()
      })

      it.each(
        steps(page.text, each).map((step) => ({ ...step, name: step._tag === "File" ? step.name : step.command }))
      )("line $line: $name", { concurrent: false }, (step) =>
        perform(step, { cwd, env, isDrill: each !== undefined }, page)
      )
    }
  )
}
