/**
 * Runs the checks and prints one line each, with a check's own output only if it fails. `npm run check` runs all of them,
 * `npm run check -- lint format` some. Writes the verdicts to check-results.json for .ci/run.
 */
import { spawnSync } from "node:child_process"
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { checks } from "./checks.mjs"
import { root } from "./workspace.mjs"

const run = ([name, ...args]) => {
  const result = spawnSync(name, args, { cwd: root, encoding: "utf8", shell: process.platform === "win32" })
  if (result.status === 0) return undefined
  const output = `${result.stdout ?? ""}${result.stderr ?? ""}${result.error?.message ?? ""}`.trim()
  return `> ${[name, ...args].join(" ")}\n${output}`
}

const asked = process.argv.slice(2)
const unknown = asked.filter((name) => !(name in checks))
if (unknown.length > 0) {
  console.error(`No check named ${unknown.join(", ")}. There are: ${Object.keys(checks).join(", ")}`)
  process.exit(1)
}

const verdicts = {}
for (const name of asked.length > 0 ? asked : Object.keys(checks)) {
  const start = performance.now()
  const failures = checks[name].map(run).filter((failure) => failure !== undefined)
  const seconds = ((performance.now() - start) / 1000).toFixed(1)
  verdicts[name] = failures.length === 0 ? "passed" : "failed"
  console.log(`${failures.length === 0 ? "ok    " : "FAILED"} ${name} (${seconds} s)`)
  for (const failure of failures) console.log(`\n${failure}\n`)
}
writeFileSync(join(root, "check-results.json"), JSON.stringify(verdicts))
process.exitCode = Object.values(verdicts).includes("failed") ? 1 : 0
