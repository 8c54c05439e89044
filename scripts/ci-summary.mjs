/**
 * Adds up one run of .ci/run: the tests of every package (test-results.json), the checks (check-results.json) and the
 * exit codes and seconds of its steps, given as `test=0:600 check=0:100`. A result that should be there and is not
 * counts as failed, and so does a test that could not be measured: CI is a quiet machine. What was skipped is named.
 */
import { existsSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { names as checkNames } from "./checks.mjs"
import { failedLines, results, show, sum } from "./results.mjs"
import { root } from "./workspace.mjs"

const steps = process.argv.slice(2).map((argument) => argument.split(/[=:]/))
const exits = Object.fromEntries(steps)
const counted = []
const add = (what, counts, note = "") => {
  const all = sum([counts])
  counted.push(all)
  console.log(`${what}: ${show(all)}${note}`)
}
const verdict = (passed) => ({ passed: Number(passed), failed: Number(!passed) })

const tests = results()
for (const { counts, folder } of tests) {
  if (counts === undefined) add(folder, { failed: 1 }, " (no test-results.json)")
  else add(folder, counts)
}
if (exits.test !== "0" && sum(counted).failed === 0) add("npm test", { failed: 1 }, ` (exit code ${exits.test})`)

const file = join(root, "check-results.json")
const checks = existsSync(file) ? JSON.parse(readFileSync(file, "utf8")) : {}
for (const name of checkNames) add(name, verdict(checks[name] === "passed"))
if (exits.check !== "0" && checkNames.every((name) => checks[name] === "passed")) {
  add("npm run check", { failed: 1 }, ` (exit code ${exits.check})`)
}

for (const name of ["pack", "busy", "guard", "demo", "simulate"]) add(name, verdict(exits[name] === "0"))

for (const { folder, skipped } of tests) for (const line of skipped) console.log(`skipped in ${folder}: ${line}`)
console.log(`seconds: ${steps.map(([name, , seconds]) => `${name} ${seconds}`).join(", ")}`)
// Last, where a log that is cut short still has them.
for (const line of failedLines(tests)) console.log(line)
for (const line of failedLines(results("test-results.conformance.json"))) console.log(`busy: ${line}`)

const total = sum(counted)
console.log(`in all: ${show(total)}`)
const failed = total.failed + total.notMeasurable
console.log(`${total.passed} passed, ${failed} failed${total.skipped > 0 ? `, ${total.skipped} skipped` : ""}`)
process.exitCode = failed === 0 && total.passed > 0 ? 0 : 1
