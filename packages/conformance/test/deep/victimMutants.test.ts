/** The file broker, broken below the port in one place at a time: the named case fails, and passes on the broker as it is. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { cases } from "../../src/Cases.ts"
import * as Mutant from "../../src/Mutant.ts"
import { mutants } from "../../src/Mutants.ts"
import type { layer } from "../victim/harness.ts"
import { patches } from "../victim/mutants.ts"

const broken = async (patch: Mutant.Patch): Promise<{ readonly layer: typeof layer }> =>
  import(/* @vite-ignore */ `../victim/harness.ts?patch=${encodeURIComponent(JSON.stringify(patch))}`)

/** Groups of which every case has a mutant, of the file broker or of the memory broker. */
const groups = ["leases", "processes", "failing calls", "deleted queues", "adopted queues", "durability"]

it("every case about what is below an adapter has a mutant that it finds", () => {
  const killed = new Set([...patches, ...mutants].map(({ kills }) => kills))
  const found = cases.filter(({ group, name }) => groups.includes(group) && !killed.has(name))
  assert.deepStrictEqual(
    found.map(({ name }) => name),
    []
  )
})

describe("every patch of the file broker is found by the case that it names", () => {
  it.live.each(patches)("$name: $kills", (patch) =>
    Effect.gen(function* () {
      const { layer } = yield* Effect.promise(() => broken(patch))
      const { _tag, ...rest } = yield* Mutant.run(patch, { name: "file", layer, virtualTime: true })
      assert.strictEqual(_tag, "Killed", JSON.stringify(rest))
    })
  )
})
