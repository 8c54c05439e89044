/** Defects that were found once: each scenario keeps all laws, and breaks one where the defect is put back. */
import { assert, describe, it } from "@effect/vitest"
import * as Checked from "../src/Checked.ts"
import { mutants } from "./mutants/core.ts"
import { rare } from "./mutants/rare.ts"
import * as Regression from "./regressions/Regression.ts"

const regressions = Regression.all()

describe("a defect that was found once", () => {
  it.each(regressions.map((each) => [each.mutant, each] as const))("is gone: %s", async (_, { scenario }) => {
    assert.deepStrictEqual((await Checked.run(scenario)).violations, [])
  })

  it("would be seen in its scenario", async () => {
    const names = regressions.map(({ mutant }) => mutant)
    const wanted = names.map((name) => [...mutants, ...rare].find((each) => each.name === name)!)
    const printed = await Regression.within(wanted, "replay.ts", names.map(Regression.fileOf))
    const laws: ReadonlyArray<string> = printed
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line) as string)
    assert.deepStrictEqual(
      laws,
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
