import { assert, it } from "@effect/vitest"
import { Timers } from "@requeue/core/port"
import * as Effect from "effect/Effect"
import * as InFlight from "../src/internal/consume/inFlight.ts"
import * as Remembered from "../src/internal/consume/remembered.ts"

const ignore = (): void => {}

it.effect("a delivery that the core gives another count is the same one, and ends once", () =>
  Effect.gen(function* () {
    const inFlight = InFlight.make({
      queue: "orders",
      fifo: false,
      settings: { fifoRetry: "block", visibilityTimeout: 30_000 },
      timers: yield* Timers.make,
      now: () => 0,
      remembered: Remembered.byQueue()("orders"),
      sources: {
        before: () => ({ count: 0, isShared: false }),
        knows: () => true,
        learn: () => Effect.void
      },
      onEnd: ignore,
      release: ignore,
      discard: ignore
    })
    const [first, second] = ["1", "2"].map((id) => inFlight.received({ MessageId: id, ReceiptHandle: id, Body: "" })!)
    const counted = { ...first!, attempts: 3 }
    inFlight.held(counted)
    inFlight.ended(counted, "gone")
    inFlight.ended(first!, "gone")
    assert.deepStrictEqual([inFlight.deliveries(), inFlight.size(), inFlight.heldCount()], [[second!], 1, 0])
  })
)
