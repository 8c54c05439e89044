/**
 * Builds what the example needs, quietly, then runs it on the workspace's Node with the given arguments. The example controls the
 * terminal; every signal reaches it once, and its exit code is this process's. The npm script starts with `exec` because npm
 * signals the shell, which would not forward a signal.
 */
import { spawn } from "node:child_process"
import { join } from "node:path"
import { explain, run } from "./run.mjs"
import { root } from "./workspace.mjs"

const build = run(["turbo", "run", "build", "--filter=./apps/example..."])
if (build.status !== 0) {
  explain(build)
  process.exit(1)
}

const windows = process.platform === "win32"

// In a separate process group: Ctrl-C goes to the whole group of a terminal, and npm forwards it as well. An example for which a
// second Ctrl-C means "stop at once" must not receive the same one three times.
const example = spawn(
  join(root, "node_modules", "node", "bin", windows ? "node.exe" : "node"),
  [join(root, "apps", "example", "dist", "main.js"), ...process.argv.slice(2)],
  { stdio: "inherit", detached: !windows }
)

const last = {}
const handlers = ["SIGINT", "SIGTERM", "SIGHUP", "SIGWINCH"].map((signal) => {
  const handler = () => {
    const now = performance.now()
    const repeated = signal !== "SIGWINCH" && now - (last[signal] ?? -Infinity) < 250
    last[signal] = now
    if (!repeated) example.kill(signal)
  }
  process.on(signal, handler)
  return [signal, handler]
})

example.on("error", (error) => {
  console.error(error.message)
  process.exit(1)
})
example.on("exit", (code, signal) => {
  for (const [name, handler] of handlers) process.off(name, handler)
  if (signal === null) process.exit(code)
  else process.kill(process.pid, signal)
})
