/**
 * Adds up one run of .ci/run: the tests of every package (test-results.json), the checks (check-results.json) and the
 * exit codes given as `test=0 check=0 pack=0 guard=0 demo=0`. A result that should be there and is not counts as failed.
 */
import { existsSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { packages, root } from "./workspace.mjs"

const total = { passed: 0, failed: 0, skipped: 0 }
const count = (what, { passed = 0, failed = 0, skipped = 0 }, note = "") => {
  total.passed += passed
  total.failed += failed
  total.skipped += skipped
  console.log(`${what}: ${passed} passed, ${failed} failed${skipped > 0 ? `, ${skipped} skipped` : ""}${note}`)
}
const verdict = (passed) => ({ passed: Number(passed), failed: Number(!passed) })
const read = (...path) =>
  existsSync(join(root, ...path)) ? JSON.parse(readFileSync(join(root, ...path), "utf8")) : undefined

const exits = Object.fromEntries(process.argv.slice(2).map((argument) => argument.split("=")))

for (const { folder, manifest } of packages) {
  if (manifest.scripts?.test === undefined) continue
  const report = read(folder, "test-results.json")
  if (report === undefined) count(folder, { failed: 1 }, " (no test-results.json)")
  else {
    // A file that cannot even be loaded has no failed assertion.
    const broken = report.testResults.filter(
      (file) => file.status === "failed" && !file.assertionResults.some((test) => test.status === "failed")
    ).length
    const failed = report.numFailedTests + broken
    const silent = failed === 0 && (!report.success || report.numTotalTests === 0)
    count(folder, {
      passed: report.numPassedTests,
      failed: silent ? 1 : failed,
      skipped: report.numPendingTests + report.numTodoTests
    })
  }
}
if (exits.test !== "0" && total.failed === 0) count("npm test", { failed: 1 }, ` (exit code ${exits.test})`)

const checks = read("check-results.json") ?? {}
for (const [name, result] of Object.entries(checks)) count(name, verdict(result === "passed"))
if (exits.check !== "0" && !Object.values(checks).includes("failed")) {
  count("npm run check", { failed: 1 }, ` (exit code ${exits.check})`)
}

for (const name of ["pack", "guard", "demo"]) if (exits[name] !== undefined) count(name, verdict(exits[name] === "0"))

console.log(`${total.passed} passed, ${total.failed} failed${total.skipped > 0 ? `, ${total.skipped} skipped` : ""}`)
process.exitCode = total.failed === 0 && total.passed > 0 ? 0 : 1
