/**
 * `node scripts/run.mjs <command>` runs a command with the workspace's tools on the PATH, Node 24 among them. Any Node that runs
 * npm can start it. It first installs a fresh clone, and prints one line about it; when the lockfile changes later, `pnpm exec`
 * installs automatically.
 */
import { spawnSync } from "node:child_process"
import { existsSync } from "node:fs"
import { join } from "node:path"
import { packageManager, root } from "./workspace.mjs"

/** Here Node caches compiled code without types: tests start hundreds of programs that load the same sources. */
const compileCache = join(root, "node_modules", ".cache", "node")

const environment = () => ({ ...process.env, TURBO_TELEMETRY_DISABLED: "1" })

/** Runs the workspace's pnpm; the result is that of `spawnSync`. */
export const pnpm = (args, options) =>
  spawnSync("npx", ["-y", packageManager, ...args], {
    cwd: root,
    encoding: "utf8",
    env: environment(),
    shell: process.platform === "win32",
    ...options
  })

/** Runs a command; the result is that of `spawnSync`. */
export const run = (command, options) => {
  if (!existsSync(join(root, "node_modules", ".modules.yaml"))) {
    console.error(`Setting up: Node 24, ${packageManager} and the locked packages, from the npm registry (once) ...`)
    const install = pnpm(["install"])
    if (install.status !== 0) return install
  }
  return pnpm(["exec", ...command], { env: { NODE_COMPILE_CACHE: compileCache, ...environment() }, ...options })
}

/** Prints the output of a failed run. */
export const explain = ({ stdout, stderr, error }) => {
  for (const text of [stdout, stderr, error?.message]) if (text) console.error(text.trim())
}

if (process.argv[1].endsWith("run.mjs")) {
  const result = run(process.argv.slice(2), { stdio: "inherit" })
  if (result.status !== 0) explain(result)
  process.exitCode = result.status ?? 1
}
