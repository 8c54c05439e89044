import assert from "node:assert/strict"
import { relative } from "node:path"
import { test } from "node:test"
import { count, failures, notMeasurable, parse, replaced, show, skips, sum } from "./results.mjs"
import { root } from "./workspace.mjs"

const report = (tests, { status = "passed", success = true } = {}) => ({
  numTotalTests: tests.length,
  numPassedTests: tests.filter((each) => each.status === "passed").length,
  numFailedTests: tests.filter((each) => each.status === "failed").length,
  success,
  testResults: [{ status, assertionResults: tests }]
})

const passed = { status: "passed", meta: {} }

test("what could not be measured is no test that was skipped, and what was measured again has passed", () => {
  const counts = count(
    report([
      passed,
      { status: "passed", meta: { measured: 3 } },
      { status: "skipped", meta: { measured: 5, notMeasurable: "a retry: 900 ms late" } },
      { status: "skipped", meta: {} }
    ])
  )
  assert.deepEqual(counts, { passed: 2, failed: 0, skipped: 1, notMeasurable: 1, measuredAgain: 2 })
  assert.equal(show(counts), "2 passed, 0 failed, 1 skipped, 1 not measurable here (2 measured again)")
})

test("what could not be measured has the result of another run, where that measured it", () => {
  const late = (fullName) => ({
    fullName,
    ancestorTitles: ["all"],
    title: fullName,
    status: "skipped",
    meta: { measured: 5, notMeasurable: "late" }
  })
  const first = report([{ ...passed, fullName: "a" }, late("b"), late("c"), late("d")])
  assert.deepEqual(
    notMeasurable(first).map(({ titles }) => titles.join()),
    ["all,b", "all,c", "all,d"]
  )
  const second = report([
    { fullName: "a", status: "failed", meta: {} },
    { ...passed, fullName: "b" },
    { fullName: "c", status: "failed", meta: {} },
    late("d")
  ])
  const { failed, notMeasurable: left, passed: good, skipped } = count(replaced(first, second))
  assert.deepEqual([good, failed, skipped, left], [2, 1, 0, 1])
})

test("a file that cannot be loaded has failed", () => {
  assert.equal(count({ ...report([passed]), testResults: [{ status: "failed", assertionResults: [] }] }).failed, 1)
})

test("a run that failed and does not say in what has failed", () => {
  assert.equal(count(report([passed], { success: false })).failed, 1)
})

test("a file without a test has failed, and so has a run whose report was cut off", () => {
  assert.equal(count({ ...report([passed]), testResults: [{ status: "passed", assertionResults: [] }] }).failed, 1)
  assert.equal(parse('{"numFai').counts.failed, 1)
})

test("only what was skipped can have been not measurable", () => {
  const counts = count(report([{ status: "failed", meta: { notMeasurable: "a retry" } }, passed]))
  assert.deepEqual([counts.failed, counts.skipped, counts.notMeasurable], [1, 0, 0])
})

test("what is not told counts as 0", () => {
  assert.deepEqual(sum([{ passed: 2 }, { failed: 1 }]), {
    passed: 2,
    failed: 1,
    skipped: 0,
    notMeasurable: 0,
    measuredAgain: 0
  })
})

test("each test that failed is named with the first line of its error, and so is a file that cannot be loaded", () => {
  const broken = { status: "failed", name: "/a.test.ts", message: "Cannot find module b\n  at c", assertionResults: [] }
  const failed = { status: "failed", fullName: "books balance", failureMessages: ["Error: 1 lost\n  at d"] }
  const { testResults } = report([passed, failed, { status: "failed", fullName: "silent" }])
  assert.deepEqual(failures({ testResults: [...testResults, broken] }), [
    "books balance: Error: 1 lost",
    "silent: ",
    `${relative(root, "/a.test.ts")}: Cannot find module b`
  ])
})

test("what was skipped is named: by what its broker lacks, else by its name", () => {
  const lacks = (fullName) => ({ fullName, status: "skipped", meta: { notApplicable: "capabilities.fifo" } })
  const late = { fullName: "late", status: "skipped", meta: { notMeasurable: "late" } }
  const slow = { fullName: "clusters are slow", status: "skipped", meta: {} }
  assert.deepEqual(skips(report([passed, lacks("a"), slow, lacks("b"), late])), [
    "2 capabilities.fifo",
    "1 clusters are slow"
  ])
})
