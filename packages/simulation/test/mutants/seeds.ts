/**
 * Runs seeds one after the other, in a process whose sources have a mutant, and writes a line of JSON for each: its number
 * when it begins, and what it breaks when it breaks something.
 */
import { writeSync } from "node:fs"
import * as Generate from "../../src/Generate.ts"
import * as Checked from "../../src/Checked.ts"
import type { Kind } from "../../src/Scenario.ts"
import type { Line } from "./deaths.ts"

const [from, count, kinds] = process.argv.slice(2)
let seed = Number(from)

const write = (line: Line): void => void writeSync(1, `${JSON.stringify(line)}\n`)

process.on("uncaughtException", (error) => {
  write({ seed, law: "uncaught exception", what: String(error.stack) })
  process.exit(1)
})

for (const end = seed + Number(count); seed < end; seed++) {
  write({ seed })
  const scenario = Generate.scenario(seed, kinds!.split(",") as Array<Kind>) // The parent names kinds only.
  const { history, violations } = await Checked.run(scenario)
  const last = history.at(-1)
  const [first] = violations
  if (last?._tag === "End" && last.because === "steps") {
    write({ seed, law: "endless", what: `it went round without an end; ${first?.what ?? ""}` })
  } else if (first !== undefined) write({ seed, law: first.law, what: first.what })
}
