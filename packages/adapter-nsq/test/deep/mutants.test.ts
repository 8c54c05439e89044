/** The adapter, broken in one place at a time: the named case fails, and passes on the adapter as it is. */
import { describe, it } from "@effect/vitest"
import { Mutant } from "@requeue/conformance"
import * as Effect from "effect/Effect"
import { layer } from "../real/harness.ts"
import { patches } from "./mutants.ts"
import { server } from "./server.ts"
import { lateness } from "../world.ts"

const broken = async (patch: Mutant.Patch): Promise<{ readonly layer: typeof layer }> =>
  import(/* @vite-ignore */ `../real/harness.ts?patch=${encodeURIComponent(JSON.stringify(patch))}`)

// It looks at all of its channels each time, or leases would end late.
const { broker } = await server({ flags: { "queue-scan-selection-count": 1000 } })

/** A case and its controls take a queue each, and some a further one. */
const way = { by: "address", lateness, queues: 3 } as const

// Side by side: each harness has wires of its own, so that what it breaks disturbs nobody else.
describe.concurrent("every patch of this adapter is found by the case that it names", () => {
  it.live.each(patches)("$name: $kills", (patch, context) =>
    Effect.gen(function* () {
      const { layer: patched } = yield* Effect.promise(() => broken(patch))
      const layers = { sound: layer(broker, way), broken: patched(broker, way) }
      Mutant.report(context, yield* Mutant.runPatched(patch, { name: `nsq ${broker.version}`, ...layers }))
    })
  )
})
