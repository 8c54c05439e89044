/** The adapter, broken in one place at a time: the named case fails, and passes on the unchanged adapter. */
import { describe, it } from "@effect/vitest"
import { Mutant } from "@requeue/conformance"
import * as Effect from "effect/Effect"
import { layer } from "../real/harness.ts"
import { patches } from "./mutants.ts"

const broken = async (patch: Mutant.Patch): Promise<{ readonly layer: typeof layer }> =>
  import(/* @vite-ignore */ `../real/harness.ts?patch=${encodeURIComponent(JSON.stringify(patch))}`)

describe("every patch of this adapter is found by the case that it names", () => {
  it.live.each(patches)("$name: $kills", (patch, context) =>
    Effect.gen(function* () {
      const { layer: patched } = yield* Effect.promise(() => broken(patch))
      Mutant.report(context, yield* Mutant.runPatched(patch, { name: "acme", sound: layer, broken: patched }))
    })
  )
})
