/** The editor of whoever is at the terminal: `$VISUAL`, else `$EDITOR`, else vi. */
import * as Effect from "effect/Effect"
import { spawn } from "node:child_process"
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { Process } from "./Process.ts"
import { UsageError } from "./UsageError.ts"

/** A text that was edited. */
export interface Edited {
  readonly text: string
  /** The file that has it, which nobody else can read. */
  readonly file: string
}

const failure = (detail: string): UsageError =>
  new UsageError({ detail, remedy: "Nothing was changed. Set EDITOR to an editor that waits until you are done" })

const run = (command: string, file: string, env: NodeJS.ProcessEnv) =>
  Effect.callback<void, UsageError>((resume) => {
    // By a shell, since the variable may have arguments, as in "code --wait".
    const child =
      process.platform === "win32"
        ? spawn(`${command} "${file}"`, { stdio: "inherit", shell: true, env })
        : spawn("sh", ["-c", `${command} "$1"`, "sh", file], { stdio: "inherit", env })
    child.on("error", (error) => resume(Effect.fail(failure(`the editor ${command}: ${error.message}`))))
    child.on("close", (code) =>
      resume(code === 0 ? Effect.void : Effect.fail(failure(`the editor ${command} ended with ${code ?? "a signal"}`)))
    )
    return Effect.sync(() => void child.kill())
  })

/** Lets a text be edited in a file of its own, which stays until {@link remove}. */
export const edit = (text: string): Effect.Effect<Edited, UsageError, Process> =>
  Effect.gen(function* () {
    const { env } = yield* Process
    const file = join(mkdtempSync(join(tmpdir(), "requeue-")), "letter.txt")
    writeFileSync(file, text, { mode: 0o600 })
    const edited = run(env["VISUAL"] || env["EDITOR"] || "vi", file, { ...env })
    yield* Effect.onError(edited, () => remove(file))
    return { text: readFileSync(file, "utf8"), file }
  })

/** Removes the file of a text that was edited. */
export const remove = (file: string): Effect.Effect<void> =>
  Effect.sync(() => rmSync(dirname(file), { recursive: true, force: true }))
