/** Defects that were found once: each scenario keeps all laws, and breaks one where the defect is put back. */
import { assert, describe, it } from "@effect/vitest"
import * as Checked from "../src/Checked.ts"
import { mutants } from "./mutants/core.ts"
import { inPairs } from "./mutants/deaths.ts"
import * as Regression from "./regressions/Regression.ts"

const regressions = Regression.all()

describe("a defect that was found once", () => {
  it.each(regressions.map((each) => [each.mutant, each] as const))("is gone: %s", async (_, { scenario }) => {
    assert.deepStrictEqual((await Checked.run(scenario)).violations, [])
  })

  it("would be seen in its scenario", async () => {
    const seen = new Map<string, string>()
    await inPairs(regressions, async ({ mutant: name }) => {
      const mutant = mutants.find((each) => each.name === name)!
      seen.set(name, await Regression.within(mutant, "replay.ts", [Regression.fileOf(name)]))
    })
    assert.deepStrictEqual(
      regressions.map(({ mutant }) => seen.get(mutant)),
      regressions.map(({ law }) => law)
    )
  })

  it("is of at most 20 events", () => {
    assert.deepStrictEqual(
      regressions.filter(({ events }) => events > 20),
      []
    )
  })
})
