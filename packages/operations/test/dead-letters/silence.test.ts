/** The end of a sweep of which nothing else tells it. */
import { type Broker, BrokerError } from "@requeue/core"
import { assert, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import { TestClock } from "effect/testing"
import * as Silence from "../../src/dead-letters/internal/silence.ts"

const counting = (counts: Effect.Effect<Broker.Counts, BrokerError.BrokerError>) =>
  ({
    capabilities: { broker: "test", exactCounts: true },
    connection: () => ({ state: "up" }),
    admin: { counts: () => counts }
  }) as unknown as Broker.Service // Cast, because nothing else of it is asked.

const empty = counting(Effect.succeed({ ready: 0, inFlight: 0, delayed: 0 }))

/** Seconds after which a sweep ends that misses so many letters. */
const endsAfter = (wanted: number, broker = empty, working = 0) =>
  Effect.gen(function* () {
    const waiting = {
      isPublishing: () => false,
      size: () => ({ working, held: 0 }),
      wanted: () => wanted,
      isPaused: () => false,
      trouble: () => undefined
    }
    const fiber = yield* Effect.forkChild(Silence.make().end(broker, "orders.dlq", waiting))
    let seconds = 0
    for (; fiber.pollUnsafe() === undefined; seconds++) yield* TestClock.adjust("1 second")
    return Exit.isSuccess(fiber.pollUnsafe()!) ? seconds : `failed after ${seconds}`
  })

const secondsOf = (end: string | number): number => Number(String(end).replace("failed after ", ""))

it.effect("a sweep that has all letters ends soon; one that misses a letter waits for it for ten seconds", () =>
  Effect.gen(function* () {
    assert.isAtMost(secondsOf(yield* endsAfter(0)), 2)
    assert.strictEqual(yield* endsAfter(1), 11)
  })
)

it.effect("a broker that does not answer is not taken for an empty one", () =>
  Effect.gen(function* () {
    const lost = (reason: "Timeout" | "AccessRefused") =>
      counting(Effect.fail(new BrokerError.BrokerError({ broker: "test", operation: "counts", reason, detail: "no" })))
    // A count that is never answered takes as long again as the pause before it.
    assert.isAtLeast(secondsOf(yield* endsAfter(1, counting(Effect.never))), 60)
    assert.isAtLeast(secondsOf(yield* endsAfter(1, lost("Timeout"))), 60)
    // What the broker refuses to count will not be counted later.
    assert.isAtMost(secondsOf(yield* endsAfter(1, lost("AccessRefused"))), 5)
  })
)

it.effect("the time without a connection is no silence of the queue", () =>
  Effect.gen(function* () {
    let looks = 0
    const broker = {
      ...counting(Effect.succeed({ ready: 5, inFlight: 0, delayed: 0 })),
      capabilities: { broker: "test", exactCounts: false },
      connection: () => ({ state: looks++ < 30 ? "down" : "up" })
    } as unknown as Broker.Service // Cast, because nothing else of it is asked.
    assert.isAtLeast(secondsOf(yield* endsAfter(5, broker)), 38)
  })
)

it.effect("letters that wait by a count that is not exact fail a sweep that misses one that it had", () =>
  Effect.gen(function* () {
    const inexact = { broker: "test", exactCounts: false }
    const counts = counting(Effect.succeed({ ready: 5, inFlight: 0, delayed: 0 }))
    const broker = { ...counts, capabilities: inexact } as unknown as Broker.Service // Cast, because nothing else of it is asked.
    assert.strictEqual(yield* endsAfter(5, broker), 11)
    assert.strictEqual(yield* endsAfter(5, broker, 1), "failed after 11")
  })
)
