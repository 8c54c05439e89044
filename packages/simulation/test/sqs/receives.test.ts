/** Receives whose answers are lost, and polls that SQS continues when their consumer has ended. */
import * as Effect from "effect/Effect"
import { assert, test } from "vitest"
import { hour, ids, on, type Run, until } from "./world.ts"

test.each([
  ["once", 1],
  ["as often as the SDK asks", 3],
  ["even more often", 4]
])("a receive of a FIFO queue whose answer is lost %s is asked again, and holds up no group", (_, times) =>
  on({ visibilityTimeout: hour }, ({ broker, consume, lose, send }) =>
    Effect.gen(function* () {
      const runs: Array<Run> = []
      const one = yield* broker()
      yield* send(one, "orders.fifo", ids(2))
      const fault = lose("ReceiveMessage", "reset", { times })
      yield* consume(one, "orders.fifo", runs)
      yield* until("both", () => runs.length === 2)
      assert.strictEqual(fault.left(), 0)
      // SQS counts such a receive once.
      assert.deepStrictEqual(
        runs.map(({ attempts, id }) => [id, attempts]),
        ids(2).map((id) => [id, 1])
      )
    })
  )
)

test("a receive that SQS does not take for a repetition is followed by a new one", () =>
  on({}, ({ ask, broker, consume, lose, messages, send }) =>
    Effect.gen(function* () {
      const runs: Array<Run> = []
      const one = yield* broker()
      yield* send(one, "orders.fifo", ids(2))
      const fault = lose("ReceiveMessage", "reset")
      const consumer = yield* consume(one, "orders.fifo", runs)
      yield* until("the lost answer", () => fault.left() === 0)
      const first = messages("orders.fifo").find(({ state }) => state === "inFlight")
      yield* ask("DeleteMessageBatch", "orders.fifo", {
        Entries: [{ Id: "0", ReceiptHandle: `AQEB${first!.delivery}` }]
      })
      yield* until("the other message", () => runs.length === 1)
      assert.deepStrictEqual([runs[0]!.id, consumer.health().state], ["m1", "running"])
    })
  ))

// A poll that is cut off goes on in SQS, and hides what it finds until the visibility timeout ends.
test("a consumer that ends in the middle of a poll returns what the poll still brings", () =>
  on({ waitTime: 3000, visibilityTimeout: hour }, ({ broker, calls, consume, send, untilCounts }) =>
    Effect.gen(function* () {
      const runs: Array<Run> = []
      const one = yield* broker()
      yield* Effect.scoped(
        Effect.gen(function* () {
          const before = calls("ReceiveMessage")
          yield* consume(one, "orders", runs)
          yield* until("a poll", () => calls("ReceiveMessage") > before)
        })
      )
      yield* send(one, "orders", ["late"])
      yield* untilCounts("orders", 1, 0, 0)
      assert.deepStrictEqual(runs, [])
      yield* consume(one, "orders", runs)
      yield* until("its run", () => runs.length === 1)
      // The receive that no consumer wanted is all that may have been counted.
      assert.isAtMost(runs[0]!.attempts, 2)
    })
  ))

test("messages that a broken connection has taken come to another process when their lease ends, not before", () =>
  on({ waitTime: 20_000 }, ({ broker, consume, network, now, send, untilEmpty }) =>
    Effect.gen(function* () {
      const runs: Array<Run> = []
      const one = yield* broker()
      yield* consume(one, "orders", runs)
      yield* Effect.sleep(5000)
      network.cut("p1")
      const begun = now()
      yield* send(yield* broker(), "orders", ids(3))
      yield* until("all", () => runs.length === 3)
      assert.isAtMost(runs.at(-1)!.at - begun, 11_000)
      yield* untilEmpty("orders")
    })
  ))
