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
  const unmeasured = tests.filter(isNotMeasurable).length
  return {
    passed: numPassedTests,
    failed: silent ? 1 : failed,
    skipped: numTotalTests - numPassedTests - numFailedTests - unmeasured,
    notMeasurable: unmeasured,
    measuredAgain: tests.filter(({ meta }) => meta?.measured > 1).length
  }
}

const isNotMeasurable = ({ meta, status }) => status === "skipped" && meta?.notMeasurable !== undefined

/** The files and titles of the tests that could not be measured in one of Vitest's JSON reports. */
export const notMeasurable = ({ testResults }) =>
  testResults.flatMap(({ assertionResults, name: file }) =>
    assertionResults
      .filter(isNotMeasurable)
      .map(({ ancestorTitles, title }) => ({ file, titles: [...ancestorTitles, title] }))
  )

/** A report in which the tests that could not be measured have the results of another run, where that ran them. */
export const replaced = (report, other) => {
  const seen = new Map(
    other.testResults.flatMap(({ assertionResults, name }) =>
      assertionResults.map((test) => [JSON.stringify([name, test.fullName]), test])
    )
  )
  let [passed, failed] = [0, 0]
  const testResults = report.testResults.map((file) => {
    const assertionResults = file.assertionResults.map((test) => {
      const again = isNotMeasurable(test) ? seen.get(JSON.stringify([file.name, test.fullName])) : undefined
      if (again?.status === "passed") passed++
      if (again?.status === "failed") failed++
      return again?.status === "passed" || again?.status === "failed" ? again : test
    })
    return { ...file, assertionResults }
  })
  return {
    ...report,
    numPassedTests: report.numPassedTests + passed,
    numFailedTests: report.numFailedTests + failed,
    success: report.success && failed === 0,
    testResults
  }
}

/** The tests that failed in one of Vitest's JSON reports, and files that could not be loaded: a line each, with its error's first. */
export const failures = ({ testResults }) =>
  testResults.flatMap(({ assertionResults, message, name, status }) => {
    const failed = assertionResults.filter((test) => test.status === "failed")
    if (status === "failed" && failed.length === 0) return [`${name}: ${firstLine(message)}`]
    return failed.map((test) => `${test.fullName}: ${firstLine(test.failureMessages?.[0])}`)
  })

/**
 * Why tests were skipped in one of Vitest's JSON reports: a line for each ability that cases of the conformance suite
 * require, and one for each other test, whose file says why.
 */
export const skips = ({ testResults }) => {
  const all = testResults
    .flatMap(({ assertionResults }) => assertionResults)
    .filter((test) => test.status !== "passed" && test.status !== "failed" && !isNotMeasurable(test))
    .map(({ fullName, meta }) => meta?.notApplicable ?? fullName)
  return [...new Set(all)].map((why) => `${all.filter((one) => one === why).length} ${why}`)
}

const firstLine = (message = "") => message.trim().split("\n", 1)[0]

export const tested = packages.filter(({ manifest }) => manifest.scripts?.test !== undefined)
export const reportOf = (folder, name = "test-results.json") => join(root, folder, name)

/** A report that was cut off says that something failed. */
export const read = (text) => {
  try {
    const report = JSON.parse(text)
    return { counts: count(report), failed: failures(report), skipped: skips(report) }
  } catch {
    return { counts: sum([{ failed: 1 }]), failed: ["its test-results.json was cut off"], skipped: [] }
  }
}

/** Of the report of each package that has such a name; without counts for one that left none. */
export const results = (name) =>
  tested.map(({ folder }) => {
    const file = reportOf(folder, name)
    return existsSync(file) ? { folder, ...read(readFileSync(file, "utf8")) } : { folder, failed: [], skipped: [] }
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
