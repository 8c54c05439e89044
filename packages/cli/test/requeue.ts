/** Runs the built program, as a user would. */
import { spawn } from "node:child_process"
import { fileURLToPath } from "node:url"

const main = fileURLToPath(new URL("../dist/main.js", import.meta.url))

export interface Ended {
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
}

export interface Circumstances {
  readonly cwd?: string
  readonly env?: Readonly<Record<string, string>>
  readonly input?: string
  /** It gets a SIGINT, as from Ctrl-C, when this resolves; `said` is its standard output so far. */
  readonly interruption?: (said: () => string) => Promise<unknown>
}

/** Milliseconds that one run may take. */
const patience = 30_000

/** Ends with the program; neither stream is a terminal. */
export const requeue = (
  args: ReadonlyArray<string>,
  { cwd, env, input = "", interruption }: Circumstances = {}
): Promise<Ended> =>
  new Promise((resolve) => {
    const child = spawn(process.execPath, [main, ...args], {
      cwd: cwd ?? fileURLToPath(new URL("..", import.meta.url)),
      env: { ...process.env, ...env },
      timeout: patience
    })
    const text = { stdout: "", stderr: "" }
    for (const name of ["stdout", "stderr"] as const) child[name].on("data", (chunk) => (text[name] += chunk))
    child.on("close", (code) => resolve({ code, ...text }))
    child.stdin.end(input)
    void interruption?.(() => text.stdout).then(() => child.kill("SIGINT"))
  })
