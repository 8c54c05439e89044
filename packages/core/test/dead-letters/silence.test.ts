/** The end of a sweep of which nothing else tells it. */
import { assert, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { TestClock } from "effect/testing"
import * as Silence from "../../src/dead-letters/internal/silence.ts"
import type { Service } from "../../src/port/Broker.ts"

const empty = {
  capabilities: { broker: "test", exactCounts: true },
  connection: () => ({ state: "up" }),
  admin: { counts: () => Effect.succeed({ ready: 0, inFlight: 0, delayed: 0 }) }
} as unknown as Service // Cast, because nothing else of it is asked.

/** Seconds after which a sweep ends on a broker that counts nothing. */
const endsAfter = (wanted: number) =>
  Effect.gen(function* () {
    const waiting = {
      isPublishing: () => false,
      size: () => ({ working: 0, held: 0 }),
      wanted: () => wanted,
      isPaused: () => false,
      trouble: () => undefined
    }
    const fiber = yield* Effect.forkChild(Silence.make().end(empty, "orders.dlq", waiting))
    let seconds = 0
    for (; fiber.pollUnsafe() === undefined; seconds++) yield* TestClock.adjust("1 second")
    return seconds
  })

it.effect("a sweep that has all letters ends soon; one that misses a letter waits for it for ten seconds", () =>
  Effect.gen(function* () {
    assert.isAtMost(yield* endsAfter(0), 2)
    assert.strictEqual(yield* endsAfter(1), 11)
  })
)
