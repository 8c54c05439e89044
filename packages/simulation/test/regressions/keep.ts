/**
 * Writes the regressions: for each mutant that was a defect once, the shrunk scenario in which it breaks a law. Takes parts
 * of names; without any, all of them. Prints the histories.
 */
import { readFileSync } from "node:fs"
import { mutants } from "../mutants/core.ts"
import type { Death } from "../mutants/deaths.ts"
import * as Regression from "./Regression.ts"

const parts = process.argv.slice(2)
const deaths: ReadonlyArray<Death> = JSON.parse(
  readFileSync(new URL("../mutants/deaths.json", import.meta.url), "utf8")
)

for (const mutant of mutants) {
  const { name, was } = mutant
  const death = deaths.find((each) => each.name === name)
  const isWanted = was !== undefined && (parts.length === 0 || parts.some((part) => name.includes(part)))
  // A process that dies leaves nobody behind to shrink.
  if (!isWanted || death === undefined || ["uncaught exception", "endless", "process died"].includes(death.law))
    continue
  console.log(`${name}, seed ${death.seed}`)
  console.log(await Regression.within([mutant], "shrink.ts", [Regression.fileOf(name), name, `${death.seed}`]))
}
