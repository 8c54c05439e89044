/** What the packages' tests came to, from the test-results.json that each run leaves. */
import { existsSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { packages, root } from "./workspace.mjs"

const none = { passed: 0, failed: 0, skipped: 0, notMeasurable: 0, measuredAgain: 0 }

/**
 * Adds up one of Vitest's JSON reports. Tests whose lateness could not be judged are skipped for the runner; here they are
 * a number of their own, as are those that had to be measured more than once.
 */
export const count = ({ numFailedTests, numPassedTests, numTotalTests, success, testResults }) => {
  const tests = testResults.flatMap(({ assertionResults }) => assertionResults)
  // A file that cannot even be loaded has no failed assertion.
  const broken = testResults.filter(
    ({ assertionResults, status }) => status === "failed" && !assertionResults.some((test) => test.status === "failed")
  ).length
  const failed = numFailedTests + broken
  const silent = failed === 0 && (!success || numTotalTests === 0)
  const notMeasurable = tests.filter(
    ({ meta, status }) => status === "skipped" && meta?.notMeasurable !== undefined
  ).length
  return {
    passed: numPassedTests,
    failed: silent ? 1 : failed,
    skipped: numTotalTests - numPassedTests - numFailedTests - notMeasurable,
    notMeasurable,
    measuredAgain: tests.filter(({ meta }) => meta?.measured > 1).length
  }
}

export const add = (a, b) => Object.fromEntries(Object.keys(none).map((key) => [key, a[key] + (b[key] ?? 0)]))

export const sum = (all) => all.reduce(add, none)

/** `undefined` for a package that left no report. */
export const results = () =>
  packages
    .filter(({ manifest }) => manifest.scripts?.test !== undefined)
    .map(({ folder }) => {
      const file = join(root, folder, "test-results.json")
      return { folder, counts: existsSync(file) ? count(JSON.parse(readFileSync(file, "utf8"))) : undefined }
    })

export const show = ({ failed, measuredAgain, notMeasurable, passed, skipped }) =>
  `${passed} passed, ${failed} failed, ${skipped} skipped, ${notMeasurable} not measurable here` +
  (measuredAgain > 0 ? ` (${measuredAgain} measured again)` : "")
