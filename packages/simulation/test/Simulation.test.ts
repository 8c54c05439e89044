/** Runs of the whole world. */
import { assert, describe, it } from "@effect/vitest"
import * as Generate from "../src/Generate.ts"
import * as Simulation from "../src/Simulation.ts"

describe("a run", () => {
  it("is the same whenever its scenario is the same, also when that was written down and read", async () => {
    for (let seed = 1; seed <= 20; seed++) {
      const scenario = Generate.scenario(seed)
      const first = await Simulation.run(scenario)
      assert.deepStrictEqual(await Simulation.run(JSON.parse(JSON.stringify(scenario))), first)
    }
  })

  it("with its faults named has the same faults", async () => {
    for (let seed = 1; seed <= 20; seed++) {
      const scenario = Generate.scenario(seed)
      const first = await Simulation.run(scenario)
      const only = first.flatMap((entry) => (entry._tag === "Fault" ? [entry.site] : []))
      assert.deepStrictEqual(await Simulation.run({ ...scenario, only }), first)
    }
  })
})
