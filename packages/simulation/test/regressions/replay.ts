/** Runs the scenario of each regression on its mutant, and prints a line of JSON for each: the law that it breaks. */
import { readFileSync } from "node:fs"
import * as Original from "../../src/Checked.ts"
import * as Generate from "../../src/Generate.ts"
import { kinds } from "../../src/Scenario.ts"
import type { Regression } from "./Regression.ts"

// As they are, so that it is known what they import.
for (const kind of kinds) await Original.run(Generate.scenario(1, [kind]))

let crash: () => void = () => {}
process.on("uncaughtException", () => crash())

for (const [mutant, file] of process.argv.slice(2).entries()) {
  const { scenario }: Regression = JSON.parse(readFileSync(file, "utf8"))
  const { run }: typeof Original = await import(`../../src/Checked.ts?mutant=${mutant}`)
  // A world in which something was thrown may never end.
  const crashed = new Promise<string>((resolve) => (crash = () => resolve("uncaught exception")))
  const broken = run(scenario).then(
    ({ law }) => law,
    () => "uncaught exception"
  )
  console.log(JSON.stringify((await Promise.race([broken, crashed])) ?? ""))
}
