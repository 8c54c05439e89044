/** Shrinks what a seed, or the scenario in a file, breaks in a process whose sources have a mutant, and writes the scenario as JSON. */
import { readFileSync, writeFileSync } from "node:fs"
import * as Original from "../../src/Checked.ts"
import * as Generate from "../../src/Generate.ts"
import { type Kind, kinds, type Scenario } from "../../src/Scenario.ts"
import * as ScenarioFile from "../../src/ScenarioFile.ts"
import * as Shrink from "../../src/Shrink.ts"
import * as Table from "../../src/Table.ts"

// As they are, so that it is known what they import.
for (const kind of kinds) await Original.run(Generate.scenario(1, [kind]))

const [file, mutant, source = "", kind] = process.argv.slice(2)
const scenario: Scenario = source.endsWith(".json")
  ? ScenarioFile.read(readFileSync(source, "utf8"))
  : Generate.scenario(Number(source), [kind as Kind]) // That of a death.
const { run }: typeof Original = await import("../../src/Checked.ts?mutant=0" as string) // Its name is no file's.
const { law } = await run(scenario)
if (law === undefined) throw new Error(`${source} breaks no law`)
const small = await Shrink.shrink(scenario, law, run)
const { history, violations } = await run(small)
writeFileSync(file!, `${JSON.stringify({ mutant, law, events: Shrink.size(small), scenario: small }, undefined, 2)}\n`)
console.log(Table.print(history, violations))
