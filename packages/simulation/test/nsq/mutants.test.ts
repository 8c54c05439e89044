/** The adapter, broken in one place at a time: the case that a mutant names fails, and passes on the adapter as it is. */
import type { NsqBroker } from "@requeue/adapter-nsq"
import { Mutant, type Suite } from "@requeue/conformance"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Random from "effect/Random"
import { assert, describe, test } from "vitest"
import { layer } from "./harness.ts"
import { patches } from "./mutants.ts"

/** The adapter with a patch. */
const broken = async (patch: Mutant.Patch): Promise<typeof NsqBroker> => {
  const adapter: { readonly NsqBroker: typeof NsqBroker } = await import(
    /* @vite-ignore */ `@requeue/adapter-nsq?patch=${encodeURIComponent(JSON.stringify(patch))}`
  )
  return adapter.NsqBroker
}

const options = { name: "simulated nsqd", virtualTime: true } as const

/** How long a broken adapter may take, as in `Mutant.runPatched`: some mutants only wait. In milliseconds. */
const limitOf = (taken: number): number => 2000 + 3 * taken

/** Reports how long a case takes, in milliseconds of its own time. */
const timed = (report: (taken: number) => void) =>
  Layer.effectDiscard(
    Effect.acquireRelease(Clock.currentTimeMillis, (from) =>
      Effect.map(Clock.currentTimeMillis, (to) => report(to - from))
    )
  )

/** The same chance each time. */
const verdictOf = (patch: Mutant.Patch, of: Suite.Options): Promise<Mutant.Verdict> =>
  Effect.runPromise(Random.withSeed(Mutant.run(patch, of), "nsq"))

describe("every patch of the adapter is found by the case that it names", () => {
  test.each(patches.map((patch) => [patch.name, patch] as const))("%s", async (_, patch) => {
    let taken = 0
    const sound = Layer.merge(
      layer(),
      timed((millis) => (taken = millis))
    )
    assert.deepStrictEqual(await verdictOf(patch, { ...options, layer: sound }), {
      _tag: "Survived",
      outcome: { _tag: "Passed" }
    })
    const { make } = await broken(patch)
    const mutant = { ...options, layer: layer({}, make), timeout: limitOf(taken) }
    assert.strictEqual((await verdictOf(patch, mutant))._tag, "Killed")
  })
})
