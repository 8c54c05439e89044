import { assert, describe, it } from "@effect/vitest"
import { Mutant, Mutants } from "@requeue/conformance"
import * as Effect from "effect/Effect"
import { layer } from "./conformanceLayer.ts"
import { variants } from "./conformanceOptions.ts"
import { patches } from "./mutants.ts"

/** The mutant meets its case on the first variant to which the case applies. */
const verdict = (mutant: Mutant.Mutant, makeLayer = layer) =>
  Effect.gen(function* () {
    for (const [name, options] of Object.entries(variants)) {
      const answer = yield* Mutant.run(mutant, { name, layer: makeLayer(options), virtualTime: true })
      if (answer._tag !== "Survived" || answer.outcome._tag !== "NotApplicable") return answer
    }
    return yield* Effect.die(new Error(`${mutant.kills} applies to no variant`))
  })

describe("every mutant is killed by the case that it names", () => {
  it.live.each(Mutants.mutants)("$name", (mutant) =>
    Effect.gen(function* () {
      const { _tag, ...rest } = yield* verdict(mutant)
      assert.strictEqual(_tag, "Killed", JSON.stringify(rest))
    })
  )
})

const broken = async (patch: Mutant.Patch): Promise<{ readonly layer: typeof layer }> =>
  import(/* @vite-ignore */ `./conformanceLayer.ts?patch=${encodeURIComponent(JSON.stringify(patch))}`)

describe("every patch of this adapter is found by the case that it names", () => {
  it.live.each(patches)("$name: $kills", (patch) =>
    Effect.gen(function* () {
      const { layer: patched } = yield* Effect.promise(() => broken(patch))
      const { _tag, ...rest } = yield* verdict(patch, patched)
      assert.strictEqual(_tag, "Killed", JSON.stringify(rest))
    })
  )
})
