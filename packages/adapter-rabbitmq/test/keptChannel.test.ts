/** The channel that is kept for requests. */
import { assert, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import { TestClock } from "effect/testing"
import { EventEmitter } from "node:events"
import type { DriverConnection } from "../src/internal/client.ts"
import type { Live } from "../src/internal/connect/connection.ts"
import * as KeptChannel from "../src/internal/connect/keptChannel.ts"

const turn = Effect.promise(() => new Promise(setImmediate))

/** A connection, and the channels that were opened and closed on it. */
const connection = () => {
  const told = { opened: 0, closed: 0 }
  const channel = async () => {
    told.opened++
    return Object.assign(new EventEmitter(), { close: async () => void told.closed++ })
  }
  const driver = { heard: () => 0, channel } as unknown as DriverConnection
  const live = { driver, isGone: () => false, blockedBy: () => undefined } as unknown as Live // Casts, because nothing else is asked.
  return { live, told }
}

const context = { operation: "counts", queue: "orders" }

it.effect("requests share one channel, one after the other; a closed one is replaced", () =>
  Effect.gen(function* () {
    const { live, told } = connection()
    const kept = KeptChannel.make(1000)
    const request = Effect.scoped(Effect.andThen(kept(live, context), turn))
    yield* Effect.forEach(Array.from({ length: 5 }), () => request, { concurrency: "unbounded" })
    assert.deepStrictEqual(told, { opened: 1, closed: 0 })
    yield* Effect.scoped(
      Effect.map(kept(live, context), (channel) => (channel as unknown as EventEmitter).emit("close"))
    )
    yield* request
    assert.deepStrictEqual(told, { opened: 2, closed: 0 })
  })
)

it.effect("one that may still wait for an answer is closed, and one of a lost connection is no more used", () =>
  Effect.gen(function* () {
    const { live, told } = connection()
    const kept = KeptChannel.make(1000)
    yield* Effect.exit(Effect.scoped(Effect.andThen(kept(live, context), Effect.fail("no answer"))))
    assert.deepStrictEqual(told, { opened: 1, closed: 1 })
    yield* Effect.scoped(kept(live, context))
    const next = connection()
    yield* Effect.scoped(kept(next.live, context))
    assert.deepStrictEqual([told.opened, next.told.opened], [2, 1])
  })
)

it.effect(
  "a request that hangs holds up others for half a second at most: then one more channel is opened, and closed",
  () =>
    Effect.gen(function* () {
      const { live, told } = connection()
      const kept = KeptChannel.make(60_000)
      const hung = yield* Effect.forkChild(Effect.scoped(Effect.andThen(kept(live, context), Effect.never)))
      yield* turn
      const other = yield* Effect.forkChild(Effect.scoped(kept(live, context)))
      yield* TestClock.adjust(499)
      yield* turn
      assert.deepStrictEqual(told, { opened: 1, closed: 0 })
      yield* TestClock.adjust(1)
      yield* Fiber.join(other)
      assert.deepStrictEqual(told, { opened: 2, closed: 1 })
      yield* Fiber.interrupt(hung)
    })
)
