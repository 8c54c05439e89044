/** Prints the histories of seeds of one kind of broker, a line of JSON each: for a process of its own. */
import * as Generate from "../src/Generate.ts"
import type { Kind } from "../src/Scenario.ts"
import * as Simulation from "../src/Simulation.ts"

const [kind, ...seeds] = process.argv.slice(2)
for (const seed of seeds) {
  console.log(JSON.stringify(await Simulation.run(Generate.scenario(Number(seed), [kind as Kind])))) // the test names one
}
