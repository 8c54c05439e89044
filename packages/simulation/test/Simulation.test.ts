/** Runs of the whole world. */
import { assert, describe, it } from "@effect/vitest"
import * as Generate from "../src/Generate.ts"
import { kinds } from "../src/Scenario.ts"
import * as Simulation from "../src/Simulation.ts"

describe("a run", () => {
  it("is the same whenever its scenario is the same, as that is written down and read, or with its faults named", async () => {
    for (let seed = 1; seed <= 21; seed++) {
      const scenario = Generate.scenario(seed, [kinds[seed % kinds.length]!])
      const first = await Simulation.run(scenario)
      assert.deepStrictEqual(await Simulation.run(JSON.parse(JSON.stringify(scenario))), first)
      const only = first.flatMap((entry) => (entry._tag === "Fault" ? [entry.site] : []))
      assert.deepStrictEqual(await Simulation.run({ ...scenario, only }), first)
    }
  })
})
