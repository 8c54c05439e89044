/** The adapter, broken in one place at a time: the named case fails. */
import { assert, describe, it } from "@effect/vitest"
import { Mutant } from "@requeue/conformance"
import * as Effect from "effect/Effect"
import { patches } from "./mutants.ts"

const broken = async (patch: Mutant.Patch): Promise<typeof import("./harness.ts")> =>
  import(/* @vite-ignore */ `./harness.ts?patch=${encodeURIComponent(JSON.stringify(patch))}`)

describe("every patch of this adapter is found by the case that it names", () => {
  it.live.each(patches)("$name: $kills", (patch) =>
    Effect.gen(function* () {
      const { variants } = yield* Effect.promise(() => broken(patch))
      const { _tag, ...rest } = yield* Mutant.run(patch, {
        name: "sqlite",
        layer: variants["sqlite"]!,
        virtualTime: true
      })
      assert.strictEqual(_tag, "Killed", JSON.stringify(rest))
    })
  )
})
