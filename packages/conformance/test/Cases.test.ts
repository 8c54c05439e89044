import { assert, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { cases } from "../src/Cases.ts"
import * as Ledger from "../src/Ledger.ts"
import * as Mutant from "../src/Mutant.ts"
import { mutants } from "../src/Mutants.ts"
import * as Suite from "../src/Suite.ts"
import { layer, passes } from "./fake.ts"

it("names are unique", () => {
  for (const names of [cases.map(({ name }) => name), mutants.map(({ name }) => name)]) {
    assert.deepStrictEqual(
      names.filter((name, index) => names.indexOf(name) !== index),
      []
    )
  }
})

it("every mutant names a case", () => {
  const names = new Set(cases.map(({ name }) => name))
  assert.deepStrictEqual(
    mutants.filter(({ kills }) => !names.has(kills)).map(({ name }) => name),
    []
  )
})

it.live("a broker that does nothing does not conform", () =>
  Effect.gen(function* () {
    const { failed, notApplicable, notRun, passed } = Ledger.totals(
      yield* Suite.run({ name: "fake", layer, virtualTime: true })
    )
    assert.strictEqual(notRun, 0)
    assert.isAbove(failed, 2 * (passed + notApplicable))
  })
)

it.live("a mutant that its case does not find has survived", () =>
  Effect.gen(function* () {
    const options = { name: "fake", layer, cases: [passes], virtualTime: true }
    const verdict = yield* Mutant.run({ name: "harmless", kills: "passes" }, options)
    assert.deepStrictEqual(verdict, { _tag: "Survived", outcome: { _tag: "Passed" } })
  })
)
