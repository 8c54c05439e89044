/**
 * Measures again, with nothing beside it, what could not be measured while other tests ran. That is no second chance for
 * a test that failed: see Measured in packages/conformance.
 */
import { existsSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { notMeasurable, replaced, reportOf, tested } from "./results.mjs"
import { run } from "./run.mjs"
import { root } from "./workspace.mjs"

const read = (file) => {
  try {
    return JSON.parse(readFileSync(file, "utf8"))
  } catch {
    return undefined
  }
}

const escaped = (text) => text.replaceAll(/[\\^$.*+?()[\]{}|]/g, "\\$&")

/** Runs these tests of a package alone, and puts their results into its report. */
const measure = (folder, report, tests) => {
  const again = join(root, folder, "test-results.alone.json")
  const pattern = tests.map(({ titles }) => titles.map(escaped).join("(?: > | )")).join("|")
  const reporters = ["--reporter=default", "--reporter=json", `--outputFile.json=${again}`]
  const files = new Set(tests.map(({ file }) => file))
  const command = ["vitest", "run", "--root", join(root, folder), "--maxWorkers=1", ...reporters]
  run([...command, "-t", `(${pattern})$`, ...files], { stdio: "inherit" })
  const found = read(again)
  rmSync(again, { force: true })
  if (found !== undefined) writeFileSync(reportOf(folder), JSON.stringify(replaced(report, found)))
}

/** Measures what is left of all packages, one after another. */
export const measureAlone = () => {
  for (const { folder } of tested.filter(({ folder }) => existsSync(reportOf(folder)))) {
    const report = read(reportOf(folder))
    const tests = report === undefined ? [] : notMeasurable(report)
    if (tests.length === 0) continue
    console.log(`\n${folder}: ${tests.length} could not be measured beside others; they run again, alone.`)
    measure(folder, report, tests)
  }
}
