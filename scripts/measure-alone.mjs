/**
 * Reruns tests that could not be measured while other tests ran, one at a time. A failed test gets no second chance: see Measured
 * in packages/conformance.
 */
import { existsSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { notMeasurable, replaced } from "./results.mjs"
import { run } from "./run.mjs"
import { root } from "./workspace.mjs"

const escaped = (text) => text.replaceAll(/[\\^$.*+?()[\]{}|]/g, "\\$&")

/** Reruns what a package's report could not measure, and puts the results into the report. */
export const measureAlone = (folder, file, env) => {
  const path = join(root, file)
  const report = JSON.parse(readFileSync(path, "utf8"))
  const tests = notMeasurable(report)
  if (tests.length === 0) return
  console.log(`\n${folder}: ${tests.length} could not be measured while others ran; they are rerun alone.`)
  const again = `${path}.alone`
  const pattern = tests.map(({ titles }) => titles.map(escaped).join("(?: > | )")).join("|")
  const reporters = ["--reporter=default", "--reporter=json", `--outputFile.json=${again}`]
  const files = new Set(tests.map((test) => test.file))
  const command = ["vitest", "run", "--root", join(root, folder), "--maxWorkers=1", ...reporters]
  run([...command, "-t", `(${pattern})$`, ...files], { stdio: "inherit", env })
  if (existsSync(again)) writeFileSync(path, JSON.stringify(replaced(report, JSON.parse(readFileSync(again, "utf8")))))
  rmSync(again, { force: true })
}
