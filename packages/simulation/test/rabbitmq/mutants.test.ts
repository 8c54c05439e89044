/** The RabbitMQ adapter, broken in one place at a time, in virtual time: the named case fails on it. */
import { assert, describe, it } from "@effect/vitest"
import { Cases, Mutant, Suite } from "@requeue/conformance"
import * as Effect from "effect/Effect"
import { afterAll, describe as group, test } from "vitest"
import { cases } from "./cases.ts"
import { type Adapter, layer } from "./harness.ts"
import { patches } from "./mutants.ts"
import { patches as planted } from "./planted.ts"

Suite.register(
  { describe: group, test, afterAll },
  { name: "rabbitmq, its own cases", layer: layer(), virtualTime: true, cases }
)

const broken = async (patch: Mutant.Patch): Promise<Adapter["Service"]> =>
  import(/* @vite-ignore */ `@requeue/adapter-rabbitmq?patch=${encodeURIComponent(JSON.stringify(patch))}`)

describe("every patch of this adapter is found by the case that it names", () => {
  it.live.each([...patches, ...planted])("$name: $kills", (patch) =>
    Effect.gen(function* () {
      const adapter = yield* Effect.promise(() => broken(patch))
      const { _tag, ...rest } = yield* Mutant.run(patch, {
        name: "rabbitmq",
        layer: layer({}, adapter),
        virtualTime: true,
        cases: [...Cases.cases, ...cases]
      })
      assert.strictEqual(_tag, "Killed", JSON.stringify(rest))
    })
  )
})
