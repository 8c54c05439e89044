/**
 * Finds the deaths of all mutants, or of those whose names contain one of the arguments, prints them as a table, and writes
 * `deaths.json`, which keeps what it has of the others. It fails when one survives.
 */
import { readFileSync, writeFileSync } from "node:fs"
import { parseArgs } from "node:util"
import { type Kind, kinds } from "../../src/Scenario.ts"
import { type Death, find, inPairs } from "./deaths.ts"
import { mutants } from "./list.ts"

const { positionals, values } = parseArgs({
  allowPositionals: true,
  options: {
    most: { type: "string", default: "10000" },
    kind: { type: "string", multiple: true, default: [...kinds] }
  }
})

const file = new URL("deaths.json", import.meta.url)
const known: ReadonlyArray<Death> = JSON.parse(readFileSync(file, "utf8"))
const deaths = new Map(known.map((death) => [death.name, death]))
const wanted = mutants.filter(({ name }) => positionals.length === 0 || positionals.some((part) => name.includes(part)))
const seeds = { from: 1, count: Number(values.most), kinds: values.kind as Array<Kind> } // A wrong one fails at once.
let survivors = 0

console.log("| mutant | seeds | law | broker |\n| --- | ---: | --- | --- |")
await inPairs(wanted, async (mutant) => {
  const { name } = mutant
  const death = await find(mutant, seeds)
  if (death === undefined) {
    survivors++
    deaths.delete(name)
  } else deaths.set(name, death)
  console.log(`| ${name} | ${death?.seed ?? `survives ${values.most}`} | ${death?.law ?? ""} | ${death?.kind ?? ""} |`)
})
const all = mutants.flatMap(({ name }) => deaths.get(name) ?? [])
writeFileSync(file, `[\n${all.map((death) => `  ${JSON.stringify(death)}`).join(",\n")}\n]\n`)
process.exitCode = survivors > 0 ? 1 : 0
