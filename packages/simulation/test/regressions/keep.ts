/**
 * Writes the regressions: for each mutant that was a defect once, the shrunk scenario in which it breaks a law. Takes parts
 * of names; without any, all of them. A rare mutant needs the file of a scenario, too. Prints the histories.
 */
import { readFileSync } from "node:fs"
import { mutants } from "../mutants/core.ts"
import type { Death } from "../mutants/deaths.ts"
import { rare } from "../mutants/rare.ts"
import * as Regression from "./Regression.ts"

const args = process.argv.slice(2)
const file = args.find((arg) => arg.endsWith(".json"))
const parts = args.filter((arg) => arg !== file)
const deaths: ReadonlyArray<Death> = JSON.parse(
  readFileSync(new URL("../mutants/deaths.json", import.meta.url), "utf8")
)

for (const mutant of [...mutants, ...(file === undefined ? [] : rare)]) {
  const { name, was } = mutant
  const death = deaths.find((each) => each.name === name)
  const isWanted = was !== undefined && (parts.length === 0 || parts.some((part) => name.includes(part)))
  // A process that dies leaves nobody behind to shrink.
  const isShrinkable = death !== undefined && !["uncaught exception", "endless", "process died"].includes(death.law)
  const source = file ?? (isShrinkable ? `${death.seed}` : undefined)
  if (!isWanted || source === undefined) continue
  console.log(`${name}, ${source}`)
  console.log(
    await Regression.within([mutant], "shrink.ts", [
      Regression.fileOf(name),
      name,
      source,
      ...(death === undefined ? [] : [death.kind])
    ])
  )
}
