/** What the packages' tests came to, from the test-results.json that each run leaves. */
import { existsSync, readFileSync, rmSync } from "node:fs"
import { join } from "node:path"
import { packages, root } from "./workspace.mjs"

const none = { passed: 0, failed: 0, skipped: 0, notMeasurable: 0, measuredAgain: 0 }

const add = (a, b) => Object.fromEntries(Object.keys(none).map((key) => [key, a[key] + (b[key] ?? 0)]))

export const sum = (all) => all.reduce(add, none)

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
  // Nobody skips all that a package has to say.
  const silent = failed === 0 && (!success || numPassedTests === 0)
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

/** The tests that failed in one of Vitest's JSON reports, and files that could not be loaded: a line each, with its error's first. */
export const failures = ({ testResults }) =>
  testResults.flatMap(({ assertionResults, message, name, status }) => {
    const failed = assertionResults.filter((test) => test.status === "failed")
    if (status === "failed" && failed.length === 0) return [`${name}: ${firstLine(message)}`]
    return failed.map((test) => `${test.fullName}: ${firstLine(test.failureMessages?.[0])}`)
  })

const firstLine = (message = "") => message.trim().split("\n", 1)[0]

const tested = packages.filter(({ manifest }) => manifest.scripts?.test !== undefined)
const reportOf = (folder) => join(root, folder, "test-results.json")

/** A report that was cut off says that something failed. */
export const read = (text) => {
  try {
    const report = JSON.parse(text)
    return { counts: count(report), failed: failures(report) }
  } catch {
    return { counts: sum([{ failed: 1 }]), failed: ["its test-results.json was cut off"] }
  }
}

/** Without counts for a package that left no report. */
export const results = () =>
  tested.map(({ folder }) => {
    const file = reportOf(folder)
    return existsSync(file) ? { folder, ...read(readFileSync(file, "utf8")) } : { folder, failed: [] }
  })

/** A line for each test that failed. */
export const failedLines = (tests) =>
  tests.flatMap(({ failed, folder }) => failed.map((line) => `failed in ${folder}: ${line}`))

/** Removes the reports of earlier runs; those of tests that need not run again come back from the cache. */
export const forget = () => {
  for (const { folder } of tested) rmSync(reportOf(folder), { force: true })
}

export const show = ({ failed, measuredAgain, notMeasurable, passed, skipped }) =>
  `${passed} passed, ${failed} failed, ${skipped} skipped, ${notMeasurable} not measurable here` +
  (measuredAgain > 0 ? ` (${measuredAgain} measured again)` : "")
