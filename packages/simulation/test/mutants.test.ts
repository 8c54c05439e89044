/** Mutants of the core: each dies at the seed that is written down for it, where the sources as they are keep all laws. */
import { assert, describe, it } from "@effect/vitest"
import { readFileSync } from "node:fs"
import { mutants } from "./mutants/core.ts"
import { type Death, find, inPairs, isClean, kinds } from "./mutants/deaths.ts"

const deaths: ReadonlyArray<Death> = JSON.parse(readFileSync(new URL("mutants/deaths.json", import.meta.url), "utf8"))

describe("mutants", () => {
  it("are texts that stand in their file once", () => {
    const stale = mutants.filter(({ file, from }) => {
      const source = readFileSync(new URL(`../../${file}`, import.meta.url), "utf8")
      return source.split(from).length !== 2
    })
    assert.deepStrictEqual(stale, [])
  })

  it("have names of their own", () => {
    const names = mutants.map(({ name }) => name)
    assert.strictEqual(new Set(names).size, names.length)
  })

  it("die at their seeds", async () => {
    const found = new Map<string, Death | undefined>()
    const dying = mutants.flatMap((mutant) => {
      const death = deaths.find(({ name }) => name === mutant.name)
      return death === undefined ? [] : [{ mutant, death }]
    })
    await inPairs(dying, async ({ death, mutant }) => {
      found.set(mutant.name, await find(mutant, { from: death.seed, count: 1, kinds }))
    })
    assert.deepStrictEqual(
      dying.map(({ death }): Death | undefined => found.get(death.name)),
      [...deaths]
    )
  })

  it("are what breaks the laws there", async () => {
    const broken: Array<number> = []
    for (const { seed } of deaths) if (!(await isClean(seed, kinds))) broken.push(seed)
    assert.deepStrictEqual(broken, [])
  })
})
