/** Shrinks what a seed breaks in a process whose sources have a mutant, and writes the scenario as JSON. */
import { writeFileSync } from "node:fs"
import type * as Checked from "../../src/Checked.ts"
import * as Generate from "../../src/Generate.ts"
import * as Shrink from "../../src/Shrink.ts"
import * as Table from "../../src/Table.ts"

// As it is, so that it is known what it imports.
await import("../../src/Checked.ts")
await import("../../src/rabbitmq/index.ts")
await import("../../src/sqs/index.ts")
await import("../../src/nsq/index.ts")

const [file, mutant, seed] = process.argv.slice(2)
const scenario = Generate.scenario(Number(seed), ["rabbitmq", "sqs", "nsq"])
const { run }: typeof Checked = await import("../../src/Checked.ts?mutant=0" as string) // Its name is no file's.
const { law } = await run(scenario)
if (law === undefined) throw new Error(`seed ${seed} breaks no law`)
const small = await Shrink.shrink(scenario, law, run)
const { history, violations } = await run(small)
writeFileSync(file!, `${JSON.stringify({ mutant, law, events: Shrink.size(small), scenario: small }, undefined, 2)}\n`)
console.log(Table.print(history, violations))
