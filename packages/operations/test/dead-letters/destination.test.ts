/** The queues that letters go to. */
import type { Broker } from "@requeue/core"
import { assert, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Destination from "../../src/dead-letters/internal/destination.ts"

it.effect("letters that wait while their queue is looked up go there in their order", () =>
  Effect.gen(function* () {
    const counts = () => Effect.as(Effect.yieldNow, { ready: 0, inFlight: 0, delayed: 0 })
    const broker = {
      admin: { counts },
      capabilities: { broker: "memory" },
      connection: () => ({ state: "up" })
    } as unknown as Broker.Service // Cast, because nothing else of it is asked.
    const options = { queue: "orders.dlq", to: "orders", create: false, isOrigin: () => Effect.succeed(true) }
    const { enter } = Destination.gate(broker, options)
    const gone: Array<number> = []
    const letters = [1, 2, 3, 4]
    yield* Effect.forEach(
      letters,
      (letter) => Effect.andThen(enter("orders"), () => Effect.sync(() => void gone.push(letter))),
      { concurrency: "unbounded", discard: true }
    )
    assert.deepStrictEqual(gone, letters)
  })
)
