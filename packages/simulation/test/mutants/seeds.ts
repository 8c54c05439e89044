/**
 * Runs the seeds of mutants one after the other, and writes a line of JSON for each: the mutant and the seed when it begins,
 * and what it breaks when it breaks something.
 */
import { writeSync } from "node:fs"
import * as Checker from "../../src/check/Checker.ts"
import * as Generate from "../../src/Generate.ts"
import { kinds } from "../../src/Scenario.ts"
import * as Original from "../../src/Simulation.ts"
import type { Job, Line } from "./deaths.ts"

// As they are, so that it is known what they import.
for (const kind of kinds) await Original.run(Generate.scenario(1, [kind]))

const jobs: ReadonlyArray<Job> = JSON.parse(process.env["REQUEUE_MUTANTS"]!)
let now = { mutant: 0, seed: 0 }

const write = (line: Line): void => void writeSync(1, `${JSON.stringify(line)}\n`)

let crash: (error: Error) => void = () => {}
process.on("uncaughtException", (error) => crash(error))

for (const [mutant, { count, first, kinds }] of jobs.entries()) {
  const { scenario }: typeof Generate = await import(`../../src/Generate.ts?mutant=${mutant}`)
  const { run }: typeof Original = await import(`../../src/Simulation.ts?mutant=${mutant}`)
  for (let seed = first; seed < first + count; seed++) {
    now = { mutant, seed }
    write(now)
    const wanted = scenario(seed, kinds)
    // A world in which something was thrown may never end.
    const crashed = new Promise<Error>((resolve) => (crash = resolve))
    const history = await Promise.race([
      run(wanted).catch((cause: unknown) => (cause instanceof Error ? cause : new Error("thrown", { cause }))),
      crashed
    ])
    if (history instanceof Error) {
      if (history instanceof ReferenceError) throw new Error(`the text of the mutant is no code: ${history.message}`)
      write({ ...now, law: "uncaught exception", what: String(history.stack) })
      // What this world still throws must not be blamed on the next one: that gets a new process.
      process.exit(1)
    }
    const last = history.at(-1)
    if (last?._tag === "End" && last.because === "steps") {
      write({ ...now, law: "endless", what: "it went round without an end" })
      continue
    }
    const [broken] = Checker.check(wanted, history)
    if (broken !== undefined) write({ ...now, law: broken.law, what: broken.what })
  }
}
