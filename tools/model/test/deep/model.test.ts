/** Alloy checks the model, finds each wrong order of steps, and makes the traces that are replayed. */
import { readFileSync } from "node:fs"
import { assert, describe, it } from "@effect/vitest"
import * as Alloy from "../../src/alloy.ts"
import * as Fixture from "../../src/fixture.ts"
import * as Traces from "../../src/traces.ts"

const missing = await Alloy.missing()

/** The length of each mutant's counterexample, as the table of the README says it. */
const table = (): Record<string, number> =>
  Object.fromEntries(
    [
      ...readFileSync(new URL("../../README.md", import.meta.url), "utf8").matchAll(/^\| `(Mutant\w+)` .* (\d+) \|$/gm)
    ].map(([, name = "", length]) => [name, Number(length)])
  )

describe.skipIf(missing !== undefined)(
  `the model${missing === undefined ? "" : ` (Alloy does not run: ${missing})`}`,
  () => {
    it("has no counterexample", async () => {
      const outcomes = await Alloy.run("Holds")
      assert.deepStrictEqual(
        outcomes.map(({ command, instances }) => [command, instances.length]),
        [
          ["HoldsAtFirst", 0],
          ["HoldsInEachStep", 0],
          ["HoldsInTraces", 0],
          ["HoldsForOthers", 0]
        ]
      )
    })

    it("has one for each wrong order of steps, as long as the README says", async () => {
      const found = (await Alloy.run("Mutant")).map(({ command, instances }) => [
        command,
        Traces.lengthOf(instances[0] ?? [])
      ])
      assert.deepStrictEqual(Object.fromEntries(found), table())
    })

    it("of transactions has no counterexample, and one for each wrong protocol", async () => {
      const outcomes = [
        ...(await Alloy.run("Holds", 1, "transaction.als")),
        ...(await Alloy.run("Mutant", 1, "transaction.als"))
      ]
      assert.deepStrictEqual(
        outcomes.map(({ command, instances }) => [command, instances.length]),
        [
          ["HoldsOnce", 0],
          ["MutantAckOnSuccess", 1],
          ["MutantAckUnfenced", 1],
          ["MutantEffectAlone", 1],
          ["MutantStoresRetry", 1]
        ]
      )
    })

    it("makes the traces that are committed; REQUEUE_RECORD=1 writes them", async () => {
      const traces = Traces.of(await Alloy.run("Trace", 8))
      if (process.env["REQUEUE_RECORD"] === "1") Fixture.write(traces)
      assert.deepStrictEqual(traces, Fixture.read())
    })
  }
)
