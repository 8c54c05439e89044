/** Mutants of the core and of adapters: each dies at the seed that is written down for it, where the sources as they are keep all laws. */
import { assert, describe, it } from "@effect/vitest"
import { readFileSync } from "node:fs"
import { atSeeds, type Death, isClean } from "./mutants/deaths.ts"
import { mutants } from "./mutants/list.ts"

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
    const found = await atSeeds(
      deaths.flatMap(({ kind, name, seed }) =>
        mutants.filter((mutant) => mutant.name === name).map((mutant) => ({ mutant, seed, kind }))
      )
    )
    assert.deepStrictEqual(found, [...deaths])
  }, 600_000)

  it("are what breaks the laws there", async () => {
    const worlds = new Map(deaths.map(({ kind, seed }) => [`${kind} ${seed}`, { kind, seed }]))
    const broken: Array<string> = []
    for (const [name, { kind, seed }] of worlds) if (!(await isClean(seed, [kind]))) broken.push(name)
    assert.deepStrictEqual(broken, [])
  })
})
