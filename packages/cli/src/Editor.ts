/** Runs the user's editor: `$VISUAL`, else `$EDITOR`, else vi, but vi only on a terminal. */
import * as Effect from "effect/Effect"
import { spawn } from "node:child_process"
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { Process, type Service } from "./Process.ts"
import { UsageError } from "./UsageError.ts"

/** A text after the user has edited it. */
export interface Edited {
  readonly text: string
  /** The file of the text, which other users cannot read. */
  readonly file: string
}

const failure = (detail: string): UsageError =>
  new UsageError({ detail, remedy: "Nothing was changed. Set EDITOR to an editor that waits until you are done" })

/** Milliseconds that an interrupted editor has to end itself. */
const endTimeout = 1_000

/**
 * Runs the editor. Without a terminal it leads a group of processes, which end with it; a terminal's Ctrl-C reaches
 * all of them.
 */
const run = (command: string, file: string, { env, stderr, stdin, stdout }: Service) =>
  Effect.callback<void, UsageError>((resume) => {
    const detached = ![stdin, stdout, stderr].some(({ isTTY }) => isTTY === true)
    const options = { stdio: "inherit", env: { ...env }, detached } as const
    // By a shell, because the variable may have arguments, as in "code --wait".
    const child =
      process.platform === "win32"
        ? spawn(`${command} "${file}"`, { ...options, shell: true })
        : spawn("sh", ["-c", `${command} "$1"`, "sh", file], options)
    child.on("error", (error) => resume(Effect.fail(failure(`the editor ${command}: ${error.message}`))))
    child.on("close", (code) =>
      resume(code === 0 ? Effect.void : Effect.fail(failure(`the editor ${command} ended with ${code ?? "a signal"}`)))
    )
    const closed = Effect.callback<void>((resume) => void child.on("close", () => resume(Effect.void)))
    const kill = (signal: NodeJS.Signals) => {
      try {
        if (detached && child.pid !== undefined) process.kill(-child.pid, signal)
        else child.kill(signal)
      } catch {
        // It has ended.
      }
    }
    return Effect.gen(function* () {
      kill("SIGTERM")
      yield* Effect.timeoutOption(Effect.interruptible(closed), endTimeout)
      kill("SIGKILL")
    })
  })

/** Finds the editor's command. */
const command = Effect.gen(function* () {
  const { env, stdin, stdout } = yield* Process
  const given = env["VISUAL"] || env["EDITOR"]
  if (given !== undefined && given !== "") return given
  if (stdin.isTTY === true && stdout.isTTY === true) return "vi"
  return yield* failure("neither VISUAL nor EDITOR names an editor, and there is no terminal for vi")
})

const attempt = <A>(work: () => A): Effect.Effect<A, UsageError> =>
  Effect.try({
    try: work,
    catch: (error) => failure(`the file to edit: ${error instanceof Error ? error.message : ""}`)
  })

/** Opens the editor with a text in a new file, which stays until {@link remove}. */
export const edit = (text: string): Effect.Effect<Edited, UsageError, Process> =>
  Effect.gen(function* () {
    const process = yield* Process
    const editor = yield* command
    const file = yield* attempt(() => join(mkdtempSync(join(tmpdir(), "requeue-")), "letter.txt"))
    const edited = Effect.gen(function* () {
      yield* attempt(() => writeFileSync(file, text, { mode: 0o600 }))
      yield* run(editor, file, process)
      return { text: yield* attempt(() => readFileSync(file, "utf8")), file }
    })
    return yield* Effect.onError(edited, () => remove(file))
  })

/** Removes the file of an edited text. */
export const remove = (file: string): Effect.Effect<void> =>
  Effect.sync(() => rmSync(dirname(file), { recursive: true, force: true }))
