/** The adapter, broken in one place at a time: the named case fails, and passes on the adapter as it is. */
import { describe, it } from "@effect/vitest"
import { Mutant } from "@requeue/conformance"
import * as Effect from "effect/Effect"
import { layer } from "../real/harness.ts"
import * as Own from "./ownMutants.ts"
import { apart, shared } from "../real/server.ts"

const broken = async (patch: Mutant.Patch): Promise<{ readonly layer: typeof layer }> =>
  import(/* @vite-ignore */ `../real/harness.ts?patch=${encodeURIComponent(JSON.stringify(patch))}`)

const one = await shared()

describe.concurrent("every patch of this adapter is found by the case that it names", () => {
  it.live.each(Own.patchesFor(one))("$name: $kills", (patch, context) =>
    Effect.gen(function* () {
      const { layer: patched } = yield* Effect.promise(() => broken(patch))
      const own = yield* apart(one)
      const layers = { sound: layer(own), broken: patched(own) }
      const verdict = Mutant.runPatched(patch, { name: `rabbitmq ${one.version}`, cases: Own.cases, ...layers })
      Mutant.report(context, yield* verdict)
    })
  )
})
