/** Runs the program: in this process, where what it says is the point, or as a process of its own. */
import { spawn } from "node:child_process"
import { join } from "node:path"
import { Readable, Writable } from "node:stream"
import { fileURLToPath } from "node:url"
import manifest from "../package.json" with { type: "json" }
import { run } from "../src/Program.ts"
import { within } from "./until.ts"

const home = fileURLToPath(new URL("..", import.meta.url))

/** The source of what package.json has as `requeue`. */
export const main = join(home, manifest.bin.requeue.replace("dist", "src").replace(/js$/, "ts"))

interface Said {
  stdout: string
  stderr: string
  /** Both streams, in the order in which they were written. */
  both: string
}

/** The program as a command of a shell. */
export const quoted = [process.execPath, main].map((path) => JSON.stringify(path)).join(" ")

export interface Ended extends Readonly<Said> {
  readonly code: number | null
}

export interface Circumstances {
  readonly cwd?: string
  readonly env?: Readonly<Record<string, string>>
  readonly input?: string
  /** It is interrupted when this resolves; `said` is its standard output so far. */
  readonly interruption?: (said: () => string) => Promise<unknown>
  /** By which a process is interrupted. Default: SIGINT, as from Ctrl-C. */
  readonly signal?: NodeJS.Signals
}

interface Running {
  readonly code: Promise<number | null>
  readonly interrupt: () => void
  /** Ends it, whatever it does. */
  readonly kill: () => void
}

const end = async (
  title: string,
  said: Said,
  { code, interrupt, kill }: Running,
  { interruption }: Circumstances
): Promise<Ended> => {
  const interrupted = interruption?.(() => said.stdout).then(interrupt)
  try {
    const [ended] = await within(Promise.all([code, interrupted]), () => `the end of ${title}. It said:\n${said.both}`)
    return { code: ended, ...said }
  } finally {
    kill()
  }
}

const surroundings = ({ cwd = home, env }: Circumstances) => ({ cwd, env: { ...process.env, ...env } })

/** The program in this process; neither stream is a terminal. */
export const requeue = (args: ReadonlyArray<string>, circumstances: Circumstances = {}): Promise<Ended> => {
  const { cwd, env } = surroundings(circumstances)
  const said: Said = { stdout: "", stderr: "", both: "" }
  const stream = (name: "stdout" | "stderr") =>
    new Writable({
      decodeStrings: false,
      write: (text: string, _, done) => {
        said[name] += text
        said.both += text
        done()
      }
    })
  const stdin = Readable.from([Buffer.from(circumstances.input ?? "")])
  const interruption = new AbortController()
  const interrupt = () => interruption.abort()
  const streams = { stdin, stdout: stream("stdout"), stderr: stream("stderr") }
  const code = run(args, { cwd: () => cwd, env, ...streams }, interruption.signal)
  return end(`requeue ${args.join(" ")}`, said, { code, interrupt, kill: interrupt }, circumstances)
}

/** A process; none of its streams is a terminal. */
export const spawned = (
  command: string,
  args: ReadonlyArray<string>,
  circumstances: Circumstances = {}
): Promise<Ended> => {
  const child = spawn(command, args, surroundings(circumstances))
  const said: Said = { stdout: "", stderr: "", both: "" }
  for (const name of ["stdout", "stderr"] as const) {
    child[name].setEncoding("utf8").on("data", (text: string) => {
      said[name] += text
      said.both += text
    })
  }
  // Who ends without reading it breaks the pipe.
  child.stdin.on("error", () => {}).end(circumstances.input ?? "")
  const code = new Promise<number | null>((resolve, reject) => child.on("close", resolve).on("error", reject))
  const interrupt = () => void child.kill(circumstances.signal ?? "SIGINT")
  const kill = () => void child.kill("SIGKILL")
  return end([command, ...args].join(" "), said, { code, interrupt, kill }, circumstances)
}

/** The program in a process of its own, as users have it. */
export const program = (args: ReadonlyArray<string>, circumstances?: Circumstances): Promise<Ended> =>
  spawned(process.execPath, [main, ...args], circumstances)
