/**
 * Runs the checks and prints one line each, with a check's own output only when it fails. `npm run check` runs all of
 * them, `npm run check -- lint format` some. Leaves the verdicts in check-results.json for .ci/run.
 */
import { spawnSync } from "node:child_process"
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { packages, root } from "./workspace.mjs"

const turbo = (task) => ["turbo", "run", task, "--output-logs=errors-only"]
const perPublished = (...command) =>
  packages.filter(({ manifest }) => manifest.private !== true).map(({ folder }) => ({ folder, command }))

/** Each check is a list of commands, run in their folder; all of them must succeed. */
const checks = {
  // The compiler over sources and tests of every package.
  types: [{ command: turbo("check") }],
  // Type-aware rules read the declarations of built packages.
  lint: [{ command: turbo("build") }, { command: ["oxlint", "--type-aware", "--deny-warnings"] }],
  format: [{ command: ["oxfmt", "--check"] }],
  arrows: [{ command: ["node", "scripts/arrows.mjs"] }],
  // Every example of the documentation, compiled and run.
  examples: [{ command: turbo("build") }, { command: ["node", "scripts/examples.mjs"] }],
  // Made, so that what a docstring links to is there.
  reference: [{ command: turbo("build") }, { command: ["npm", "run", "--silent", "reference"] }],
  scripts: [{ command: ["node", "--test", "scripts/*.test.mjs"] }],
  publint: [{ command: turbo("build") }, ...perPublished("publint", "--strict")],
  attw: [{ command: turbo("build") }, ...perPublished("attw", "--pack", ".", "--profile", "esm-only")],
  knip: [{ command: ["knip", "--no-progress"] }]
}

const run = ({ folder = ".", command: [name, ...args] }) => {
  const result = spawnSync(name, args, {
    cwd: join(root, folder),
    encoding: "utf8",
    shell: process.platform === "win32"
  })
  if (result.status === 0) return undefined
  const output = `${result.stdout ?? ""}${result.stderr ?? ""}${result.error?.message ?? ""}`.trim()
  return `> ${folder === "." ? "" : `${folder}: `}${[name, ...args].join(" ")}\n${output}`
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
