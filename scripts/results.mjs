/** The results of tests, from the JSON reports of Vitest. */
import { existsSync, readFileSync, rmSync } from "node:fs"
import { basename, join, relative } from "node:path"
import { packages, root } from "./workspace.mjs"

const none = { passed: 0, failed: 0, skipped: 0, notMeasurable: 0, measuredAgain: 0 }

const add = (a, b) => Object.fromEntries(Object.keys(none).map((key) => [key, a[key] + (b[key] ?? 0)]))

export const sum = (all) => all.reduce(add, none)

/**
 * Adds up one of Vitest's JSON reports. Tests whose lateness could not be judged are skipped for the runner; here they have a
 * separate number, and so do tests that were measured more than once.
 */
export const count = ({ numFailedTests, numPassedTests, numTotalTests, success, testResults }) => {
  const tests = testResults.flatMap(({ assertionResults }) => assertionResults)
  const broken = testResults.filter((file) => isBroken(file) || isEmpty(file)).length
  const failed = numFailedTests + broken
  const silent = failed === 0 && !success
  const unmeasured = tests.filter(isNotMeasurable).length
  return {
    passed: numPassedTests,
    failed: silent ? 1 : failed,
    skipped: numTotalTests - numPassedTests - numFailedTests - unmeasured,
    notMeasurable: unmeasured,
    measuredAgain: tests.filter(({ meta }) => meta?.measured > 1).length
  }
}

/** A file that cannot even be loaded has no failed assertion. */
const isBroken = ({ assertionResults, status }) =>
  status === "failed" && !assertionResults.some((test) => test.status === "failed")

const isEmpty = ({ assertionResults, status }) => status !== "failed" && assertionResults.length === 0

const isNotMeasurable = ({ meta, status }) => status === "skipped" && meta?.notMeasurable !== undefined

/** The files and titles of the tests that could not be measured in one of Vitest's JSON reports. */
export const notMeasurable = ({ testResults }) =>
  testResults.flatMap(({ assertionResults, name: file }) =>
    assertionResults
      .filter(isNotMeasurable)
      .map(({ ancestorTitles, title }) => ({ file, titles: [...ancestorTitles, title] }))
  )

/** A report in which the tests that could not be measured have the results of another run, if that ran them. */
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
    const file = name === undefined ? "" : `${relative(root, name)}: `
    if (isBroken({ assertionResults, status }))
      return [`${file}${firstLine(message) || "it cannot be loaded, or a hook failed"}`]
    if (isEmpty({ assertionResults, status })) return [`${file}there is no test in it`]
    return failed.map((test) => `${file}${test.fullName}: ${firstLine(test.failureMessages?.[0])}`)
  })

/**
 * Why tests were skipped in one of Vitest's JSON reports: a line for each ability that cases of the conformance suite require,
 * and one for each other test, whose file gives the reason.
 */
export const skips = ({ testResults }) => {
  const all = testResults
    .flatMap(({ assertionResults }) => assertionResults)
    .filter((test) => test.status !== "passed" && test.status !== "failed" && !isNotMeasurable(test))
    .map(({ fullName, meta }) => meta?.notApplicable ?? fullName)
  return [...new Set(all)].map((why) => `${all.filter((one) => one === why).length} ${why}`)
}

const firstLine = (message = "") => message.trim().split("\n", 1)[0]

/** A package's name, such as `core`. */
export const nameOf = ({ folder }) => basename(folder)

/** The packages that have tests. */
export const tested = packages.filter(({ folder }) => existsSync(join(root, folder, "test")))

/** The results in one of Vitest's JSON reports. A missing or truncated report counts as a failure. */
export const parse = (text) => {
  try {
    const report = JSON.parse(text)
    return { counts: count(report), failed: failures(report), skipped: skips(report), files: durations(report) }
  } catch {
    return { counts: sum([{ failed: 1 }]), failed: ["the report is missing or cut off"], skipped: [], files: [] }
  }
}

/** Reads a report by its path in the workspace. */
export const read = (file) => {
  const path = join(root, file)
  const isThere = existsSync(path)
  return { name: file, isThere, ...parse(isThere ? readFileSync(path, "utf8") : "") }
}

/** A line for each test that failed. */
export const failedLines = (tests) =>
  tests.flatMap(({ failed, name }) => failed.map((line) => `failed in ${name}: ${line}`))

/** The files of one of Vitest's JSON reports, with the seconds that each took. */
const durations = ({ testResults }) =>
  testResults.map(({ endTime, name, startTime }) => ({ file: name, seconds: (endTime - startTime) / 1000 }))

/** A line for each of the slowest files. */
export const slowest = (tests, most) =>
  tests
    .flatMap(({ files }) => files)
    .toSorted((a, b) => b.seconds - a.seconds)
    .slice(0, most)
    .map(({ file, seconds }) => `${seconds.toFixed(1).padStart(6)} s  ${relative(root, file)}`)

/** Removes the reports of earlier runs, by their paths in the workspace. */
export const forget = (files) => {
  for (const file of files) rmSync(join(root, file), { force: true })
}

export const show = ({ failed, measuredAgain, notMeasurable, passed, skipped }) =>
  `${passed} passed, ${failed} failed, ${skipped} skipped` +
  (notMeasurable > 0 ? `, ${notMeasurable} not measurable here` : "") +
  (measuredAgain > 0 ? ` (${measuredAgain} measured again)` : "")
