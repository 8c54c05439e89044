/** The adapter, broken in one place at a time: the named case fails on the simulated SQS. */
import { assert, describe, it } from "@effect/vitest"
import { Cases, Mutant } from "@requeue/conformance"
import * as Effect from "effect/Effect"
import { cases as own } from "./cases.ts"
import { type Adapter, layer } from "./harness.ts"
import { patches } from "./mutants.ts"

const broken = async (patch: Mutant.Patch): Promise<Adapter> =>
  import(/* @vite-ignore */ `@requeue/adapter-sqs?patch=${encodeURIComponent(JSON.stringify(patch))}`)

const cases = [...Cases.cases, ...own]

describe("every patch of the SQS adapter is found by the case that it names", () => {
  it.live.each(patches)("$name: $kills", (patch) =>
    Effect.gen(function* () {
      const adapter = yield* Effect.promise(() => broken(patch))
      const options = { name: "sqs, simulated", layer: layer(adapter), virtualTime: true, cases }
      const { _tag, ...rest } = yield* Mutant.run(patch, options)
      assert.strictEqual(_tag, "Killed", JSON.stringify(rest))
    })
  )
})
