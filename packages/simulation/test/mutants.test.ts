/** Mutants of the core: each dies at the seed that is written down for it, where the sources as they are keep all laws. */
import { assert, describe, it } from "@effect/vitest"
import { readFileSync } from "node:fs"
import { mutants } from "./mutants/core.ts"
import { atSeeds, type Death, isClean, kinds } from "./mutants/deaths.ts"

const deaths: ReadonlyArray<Death> = JSON.parse(readFileSync(new URL("mutants/deaths.json", import.meta.url), "utf8"))

describe("mutants", () => {
  it("are texts that stand in their file once", () => {
    const stale = mutants.filter(({ file, from }) => {
      const source = readFileSync(new URL(`../../${file}`, import.meta.url), "utf8")
      return source.split(from).length !== 2
    })
    assert.deepStrictEqual(stale, [])
  })

  it("have names of their own, and a death each", () => {
    const names = mutants.map(({ name }) => name)
    assert.strictEqual(new Set(names).size, names.length)
    assert.deepStrictEqual(
      deaths.map(({ name }) => name),
      names
    )
  })

  it("die at their seeds", async () => {
    const seeds = new Map(deaths.map(({ name, seed }) => [name, seed]))
    const found = await atSeeds(mutants.map((mutant) => ({ mutant, seed: seeds.get(mutant.name) ?? 1 })))
    assert.deepStrictEqual(found, [...deaths])
  }, 600_000)

  it("are what breaks the laws there", async () => {
    const broken: Array<number> = []
    for (const seed of new Set(deaths.map((death) => death.seed))) if (!(await isClean(seed, kinds))) broken.push(seed)
    assert.deepStrictEqual(broken, [])
  })
})
