/** Mutants of the adapter for SQLite: each breaks its law at its seed, where the adapter as it is keeps all laws. */
import { assert, it } from "vitest"
import { atSeeds, isClean } from "../mutants/deaths.ts"
import { mutants } from "./mutants.ts"

const kinds = ["sqlite"] as const

it("mutants of the adapter break laws, and the adapter none", async () => {
  const found = await atSeeds(
    mutants.map((mutant) => ({ mutant, seed: mutant.seed })),
    kinds
  )
  assert.deepStrictEqual(
    found.map((death) => death?.law),
    mutants.map(({ law }) => law)
  )
  for (const seed of new Set(mutants.map((each) => each.seed))) assert.isTrue(await isClean(seed, kinds), String(seed))
}, 300_000)
