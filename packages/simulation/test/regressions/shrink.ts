/** Shrinks what a seed breaks in a process whose sources have a mutant, and writes the scenario as JSON. */
import { writeFileSync } from "node:fs"
import * as Checked from "../../src/Checked.ts"
import * as Generate from "../../src/Generate.ts"
import * as Shrink from "../../src/Shrink.ts"
import * as Table from "../../src/Table.ts"

const [file, mutant, seed] = process.argv.slice(2)
const scenario = Generate.scenario(Number(seed), ["push", "lease", "lossy"])
const { law } = await Checked.run(scenario)
if (law === undefined) throw new Error(`seed ${seed} breaks no law`)
const small = await Shrink.shrink(scenario, law, Checked.run)
const { history, violations } = await Checked.run(small)
writeFileSync(file!, `${JSON.stringify({ mutant, law, events: Shrink.size(small), scenario: small }, undefined, 2)}\n`)
console.log(Table.print(history, violations))
