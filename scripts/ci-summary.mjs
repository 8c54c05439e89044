/**
 * Adds up one run of .ci/run: the tests (test-results.*.json), the checks (check-results.json) and the exit codes and seconds of
 * its steps, given as `test=0:600 check=0:100`. A missing result counts as failed, and so does a step whose exit code is worse
 * than its results. Skipped parts are named.
 */
import { existsSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { names as checkNames } from "./checks.mjs"
import { read, show, sum } from "./results.mjs"
import { root } from "./workspace.mjs"

const steps = process.argv.slice(2).map((argument) => argument.split(/[=:]/))
const exits = Object.fromEntries(steps)
const counted = []
const add = (what, counts, note = "") => {
  const all = sum([counts])
  counted.push(all)
  console.log(`${what}: ${show(all)}${note}`)
}
const parsed = (file, otherwise) => {
  const path = join(root, file)
  return existsSync(path) ? JSON.parse(readFileSync(path, "utf8")) : otherwise
}
const verdict = (passed) => ({ passed: Number(passed), failed: Number(!passed) })

const tests = ["virtual", "real"].map((level) => read(`test-results.${level}.json`))
for (const { counts, name } of tests) add(name, counts)
// Tests that did not run, a process that was left behind, or an error outside of tests.
if (exits.test !== "0" && sum(counted).failed === 0) add("npm test", { failed: 1 }, ` (exit code ${exits.test})`)

const checks = parsed("check-results.json", {})
for (const name of checkNames) add(name, verdict(checks[name] === "passed"))
if (exits.check !== "0" && checkNames.every((name) => checks[name] === "passed")) {
  add("npm run check", { failed: 1 }, ` (exit code ${exits.check})`)
}

for (const name of ["pack", "simulate", "guard", "demo"]) add(name, verdict(exits[name] === "0"))

for (const { name, skipped } of tests) for (const line of skipped) console.log(`skipped in ${name}: ${line}`)
console.log(`seconds: ${steps.map(([name, , seconds]) => `${name} ${seconds}`).join(", ")}`)
// Last, so a truncated log still has them.
for (const line of parsed("test-results.problems.json", ["npm test was ended before its end"])) console.log(line)

const { failed, notMeasurable, passed, skipped } = sum(counted)
const lost = failed + notMeasurable
console.log(`${passed} passed, ${lost} failed${skipped > 0 ? `, ${skipped} skipped` : ""}`)
process.exitCode = lost === 0 && passed > 0 ? 0 : 1
