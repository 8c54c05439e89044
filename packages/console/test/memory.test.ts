/** The memory of looks has a bound in bytes, whatever letters have. */
import { assert, describe, it } from "@effect/vitest"
import { MemoryBroker } from "@requeue/adapter-memory"
import { Broker } from "@requeue/core"
import { DeadLetters } from "@requeue/operations"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { TestClock } from "effect/testing"
import * as Connections from "../src/internal/work/connections.ts"
import * as Letters from "../src/internal/work/letters.ts"
import * as Looks from "../src/internal/work/looks.ts"
import * as World from "./world.ts"

const mebibyte = 1024 * 1024

describe("the letters of a look", () => {
  it.effect("with long headers are as many as 8 MiB hold, and short ones behind them are kept", () =>
    Effect.gen(function* () {
      const broker = yield* MemoryBroker.make()
      const letters = Letters.make()
      const headers = { note: "x".repeat(mebibyte) }
      const ids = Array.from({ length: 10 }, (_, index) => `order-${index}`)
      yield* broker.publish([
        ...ids.map((id) => World.outgoing({ id, headers }, 0)),
        World.outgoing({ id: "short" }, 0)
      ])
      const { list } = yield* Effect.provideService(DeadLetters.make("orders.dlq"), Broker.Broker, broker)
      const cause = DeadLetters.causeOf({ origin: undefined })
      for (const letter of yield* list()) letters.add(cause, letter)
      const kept = letters.of(cause).map(({ id }) => id)
      assert.deepStrictEqual(kept, ["order-0", "order-1", "order-2", "short"])
      assert.isAtMost(letters.size(), 8 * mebibyte)
    })
  )
})

describe("looks", () => {
  it.effect("are kept as far as 64 MiB, the newest ones", () =>
    Effect.gen(function* () {
      const broker = yield* MemoryBroker.make()
      const layer = Layer.succeed(Broker.Broker, broker)
      const looks = yield* Looks.make
      const connection = yield* Connections.make({ name: "local", queues: World.queues, layer, secrets: [] })
      const letter = World.outgoing({ id: "order-1", headers: { note: "x".repeat(3 * mebibyte) } }, 0)
      const queues = Array.from({ length: 15 }, (_, index) => `queue-${index}.dlq`)
      for (const queue of queues) {
        yield* broker.publish([{ ...letter, queue }])
        yield* looks.begin(connection, { broker: "local", queue }, { operator: "ann", limit: 10 })
        yield* TestClock.adjust("1 second")
      }
      const kept = queues.filter((queue) => looks.of({ broker: "local", queue })?.ended !== undefined)
      assert.deepStrictEqual(kept, queues.slice(5))
    })
  )
})
