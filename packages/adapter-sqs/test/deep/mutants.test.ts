/** The adapter, broken in one place at a time: the named case fails, and passes on the adapter as it is. */
import { describe, it } from "@effect/vitest"
import { Cases, Mutant } from "@requeue/conformance"
import * as Effect from "effect/Effect"
import { cases as fifo } from "../real/cases/fifo.ts"
import { layer } from "../real/harness.ts"
import { patches } from "./mutants.ts"
import { open } from "../real/suite.ts"

const broken = async (patch: Mutant.Patch): Promise<{ readonly layer: typeof layer }> =>
  import(/* @vite-ignore */ `../real/harness.ts?patch=${encodeURIComponent(JSON.stringify(patch))}`)

/** Leases that are short enough to be waited for. */
const target = { ...(await open("fauxqs", 400)), visibilityTimeout: 4000 }

const cases = [...Cases.cases, ...fifo]

// Side by side: no case cuts connections, and what else fails concerns one queue.
describe.concurrent("every patch of this adapter is found by the case that it names", () => {
  it.live.each(patches)("$name: $kills", (patch, context) =>
    Effect.gen(function* () {
      const { layer: patched } = yield* Effect.promise(() => broken(patch))
      const layers = { sound: layer(target), broken: patched(target) }
      Mutant.report(context, yield* Mutant.runPatched(patch, { name: target.name, cases, ...layers }))
    })
  )
})
