import { assert, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Puller from "../../src/consume/Puller.ts"
import * as Scripted from "../scripted.ts"

it.effect("a lease beyond the broker's is refused under the name that a puller's option has", () => {
  const broker = Scripted.make({ lease: { duration: 1000, max: 60_000 } })
  return Effect.gen(function* () {
    const error = yield* Effect.flip(Puller.make("q", { lease: "1 minute" }))
    assert.strictEqual(
      error.message,
      "lease (queue q, broker scripted): a pulled batch may stay unsettled for 1m, but the broker's lease ends after 1m. Set lease below 1m"
    )
    assert.strictEqual((yield* Puller.make("q", { lease: "59 seconds" })).stats().state, "running")
  }).pipe(Effect.scoped, Effect.provide(broker.layer))
})
