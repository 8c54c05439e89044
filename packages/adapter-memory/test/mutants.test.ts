import { assert, describe, it } from "@effect/vitest"
import { Mutant, Mutants } from "@requeue/conformance"
import * as Effect from "effect/Effect"
import { layer } from "./conformanceLayer.ts"

describe("every mutant is killed by the case that it names", () => {
  it.live.each(Mutants.mutants)("$name", (mutant) =>
    Effect.gen(function* () {
      const verdict = yield* Mutant.run(mutant, { name: "memory", layer: layer(), virtualTime: true })
      assert.strictEqual(verdict._tag, "Killed", JSON.stringify(verdict))
    })
  )
})
