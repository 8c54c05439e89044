/**
 * `npm run busy -- COMMAND [ARG ...]` runs a command on a busy machine: meanwhile, hogs take all cores. A command that passes
 * only because it waits for a fixed time fails here. Exit code and signals are the command's.
 */
import { fork, spawn, spawnSync } from "node:child_process"
import { once } from "node:events"
import { availableParallelism, constants } from "node:os"
import { fileURLToPath } from "node:url"
import { parseArgs } from "node:util"

const help = `npm run busy -- [options] COMMAND [ARG ...]

Runs the command while other processes use all cores, and prints their share.

  --hogs N       how many; default: one for each core
  --cores LIST   everything on these cores only, as in 0 or 0,2-3; needs taskset, which Linux has

The exit code is the command's; or 1 if the machine was not busy all the time, 2 if misused, 127 if it cannot be run.`

const most = 256

/** Below this share of the cores, the machine is not busy. */
const least = 0.05

const quit = (code, ...lines) => {
  for (const line of lines) console.error(line)
  process.exit(code)
}

const options = { hogs: { type: "string" }, cores: { type: "string" }, help: { type: "boolean", short: "h" } }

/** Options before the first other word are ours; the rest is the command's. */
const read = (args) => {
  const { tokens } = parseArgs({ args, options, strict: false, allowPositionals: true, tokens: true })
  const at = tokens.find(({ kind }) => kind === "positional")?.index ?? args.length
  const { values } = parseArgs({ args: args.slice(0, at), options })
  const hogs = values.hogs === undefined ? undefined : Number(values.hogs)
  if (hogs !== undefined && !(Number.isInteger(hogs) && hogs > 0 && hogs <= most)) {
    throw new RangeError(`--hogs is a number from 1 to ${most}`)
  }
  if (values.help !== true && !args[at]) throw new RangeError("Name a command to run")
  return { ...values, hogs, command: args.slice(at) }
}

/** Limits this process, and all that it starts, to some cores. */
const pin = (cores) => {
  const { error, stderr, status } = spawnSync("taskset", ["-a", "-c", "-p", cores, String(process.pid)])
  if (error !== undefined) quit(1, `busy: --cores needs taskset, which is not here (${error.code})`)
  if (status !== 0) quit(1, `busy: --cores ${cores}: ${String(stderr).trim()}`)
}

/** One that spins already; `had` is the microseconds of CPU since then. */
const startHog = async () => {
  // Detached: Ctrl-C in a terminal is for the command.
  const program = fileURLToPath(new URL("hog.mjs", import.meta.url))
  const child = fork(program, { detached: true, stdio: ["ignore", "ignore", "inherit", "ipc"] })
  const hog = { child, had: 0 }
  const [first] = await Promise.race([once(child, "message"), once(child, "exit")])
  child.on("message", ({ user, system }) => (hog.had = user + system - first.user - first.system))
  return hog
}

/** The exit code of the command, as a shell would report it. Our signals are forwarded. */
const run = async ([name, ...args]) => {
  const child = spawn(name, args, { stdio: "inherit", shell: process.platform === "win32" })
  // A terminal's Ctrl-C reaches the command directly.
  process.on("SIGINT", () => process.stdin.isTTY || child.kill("SIGINT"))
  for (const signal of ["SIGTERM", "SIGHUP"]) process.on(signal, () => child.kill(signal))
  try {
    const [code, signal] = await once(child, "exit")
    return code ?? 128 + constants.signals[signal]
  } catch (cause) {
    console.error(`busy: ${cause.message}`)
    return 127
  }
}

const main = async ({ command, cores, hogs: asked }) => {
  if (cores !== undefined) pin(cores)
  const width = availableParallelism()
  const all = `${width} core${width === 1 ? "" : "s"}`
  const hogs = await Promise.all(Array.from({ length: asked ?? width }, startHog))
  console.error(
    `busy: hogs ${hogs.map(({ child }) => child.pid).join(", ")} on ${all}, while running ${command.join(" ")}`
  )

  const began = performance.now()
  const code = await run(command)
  const seconds = (performance.now() - began) / 1000
  const had = hogs.reduce((sum, hog) => sum + hog.had, 0) / 1e6
  const share = had / (seconds * width)
  const percent = Math.round(100 * share)
  console.error(`busy: the hogs had ${had.toFixed(1)} s of CPU in ${seconds.toFixed(1)} s, ${percent} % of ${all}`)

  const gone = hogs.filter(({ child }) => child.exitCode !== null || child.signalCode !== null)
  // Stopped ones, too.
  for (const { child } of hogs) child.kill("SIGKILL")
  if (gone.length > 0) console.error(`busy: ${gone.length} of ${hogs.length} hogs ended before the command`)
  const wasBusy = gone.length === 0 && (share >= least || seconds < 1)
  if (!wasBusy && gone.length === 0) console.error("busy: the machine was not busy")
  return code === 0 && !wasBusy ? 1 : code
}

let asked
try {
  asked = read(process.argv.slice(2))
} catch (cause) {
  quit(2, `busy: ${cause.message}`, "", help)
}
if (asked.help === true) console.log(help)
else process.exitCode = await main(asked)
