import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { none } from "../src/Control.ts"
import { checkKept } from "../src/internal/kept.ts"
import * as Lateness from "../src/internal/lateness.ts"
import { broker, harness } from "./fake.ts"

/** How a case ends that lost a lease of 2 seconds, where a control was late by so many milliseconds. */
const lost = (control: number) => {
  const { checkLateness, checkTimely } = Lateness.make({
    bound: 100,
    control: { ...none, lateness: () => Effect.succeed(control) },
    now: () => 0,
    slack: 100
  })
  const capabilities = { ...broker.capabilities, lease: { duration: 2000, max: 10_000 } }
  checkKept({ capabilities, checkTimely, harness: { ...harness, lateness: 100 } }, "told", 1, 0, 0)
  return Effect.map(Effect.flip(checkLateness), ({ name }) => name)
}

describe("a lease that is lost though it is extended", () => {
  it.effect("is the adapter's fault on a machine that is a little late: too late for delays, not for leases", () =>
    Effect.gen(function* () {
      for (const control of [0, 130, 500]) assert.strictEqual(yield* lost(control), "CheckFailed")
    })
  )

  it.effect("says nothing on a machine that stood still for more than a quarter of it", () =>
    Effect.gen(function* () {
      assert.strictEqual(yield* lost(501), "NotMeasurable")
    })
  )
})
