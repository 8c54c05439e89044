/** Channels on a connection that has no more of them, or that answers nothing. */
import { assert, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import { TestClock } from "effect/testing"
import type { Channel, DriverConnection } from "../src/internal/client.ts"
import type { Live } from "../src/internal/connect/connection.ts"
import { openChannel, openFreeChannel } from "../src/internal/connect/openChannel.ts"

const turn = Effect.promise(() => new Promise(setImmediate))

it.effect("a channel is waited for while all of the connection are open, and refused with what to do", () =>
  Effect.gen(function* () {
    let isFull = true
    const channel = async () => {
      if (isFull) throw new Error("No channels left to allocate")
      return {} as Channel
    }
    const driver = { heard: () => 0, channel } as unknown as DriverConnection
    const live = { driver, isGone: () => false, blockedBy: () => undefined } as unknown as Live
    const open = openFreeChannel(live, { operation: "declare" }, 1000, (one) => one.channel())
    const pass = Effect.forEach(Array.from({ length: 30 }), () => Effect.andThen(turn, TestClock.adjust(50)))

    const refused = yield* Effect.forkChild(Effect.flip(open))
    yield* pass
    const error = yield* Fiber.join(refused)
    assert.strictEqual(error.reason, "AccessRefused")
    assert.match(error.message, /Raise channel_max of the server/)

    const waiting = yield* Effect.forkChild(open)
    yield* turn
    isFull = false
    yield* pass
    yield* Fiber.join(waiting)
  })
)

it.effect("what is under way on a connection that answers nothing fails with that reason", () =>
  Effect.gen(function* () {
    let reason: string | undefined
    const driver = {
      heard: () => 0,
      channel: () => new Promise(() => {}),
      destroy: (because?: string) => (reason = because)
    } as unknown as DriverConnection
    const live = { driver, isGone: () => false, blockedBy: () => undefined } as unknown as Live
    const opening = yield* Effect.forkChild(
      Effect.flip(openChannel(live, { operation: "declare" }, 1000, (one) => one.channel()))
    )
    yield* turn
    yield* TestClock.adjust(1000)
    assert.strictEqual((yield* Fiber.join(opening)).reason, "Timeout")
    assert.match(reason ?? "", /the server answered nothing on this connection for 1s/)
  })
)
