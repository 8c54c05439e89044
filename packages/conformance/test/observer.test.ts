/** A case waits for the broker's numbers until they hold. */
import { assert, it } from "@effect/vitest"
import { Broker } from "@requeue/core"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import { Harness } from "../src/Harness.ts"
import * as Lab from "../src/Lab.ts"
import * as VirtualTime from "../src/VirtualTime.ts"
import { broker, harness } from "./fake.ts"

it.live("a queue is not empty because one count does not show its message", () => {
  const counts = [0, 1, 1]
  const pending = () => Effect.sync(() => ({ ready: 0, inFlight: counts.shift() ?? 0, delayed: undefined }))
  const waited = Effect.gen(function* () {
    const begun = yield* Clock.currentTimeMillis
    yield* (yield* Lab.make("q")).untilEmpty
    return (yield* Clock.currentTimeMillis) - begun
  }).pipe(
    Effect.provideService(Harness, Harness.of({ ...harness, pending, settleTime: 50 })),
    Effect.provideService(Broker.Broker, broker)
  )
  return Effect.map(VirtualTime.run(waited), (millis) => assert.strictEqual(millis, 120))
})
