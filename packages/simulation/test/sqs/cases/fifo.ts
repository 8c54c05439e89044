/** Cases of FIFO queues, which this adapter alone has. */
import { BatchPolicy, Broker, Consumer } from "@requeue/core"
import { type Case, Check, Harness, Wait, Workload } from "@requeue/conformance"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"

/** Ids begin with the name of their group. */
const send = (queue: string, ids: ReadonlyArray<string>) =>
  Effect.gen(function* () {
    const now = yield* Clock.currentTimeMillis
    const broker = yield* Broker.Broker
    yield* broker.publish(
      ids.map((id) => Workload.outgoing(queue, id, { now, headers: { "message-group-id": id.slice(0, 1) } }))
    )
  })

const test = (
  name: string,
  body: (queue: string) => Effect.Effect<void, unknown, Broker.Broker | Scope.Scope>
): Case.Case => ({
  name,
  group: "fifo",
  run: Effect.gen(function* () {
    const { uniqueQueue } = yield* Harness.Harness
    yield* body(`${yield* uniqueQueue("fifo")}.fifo`)
  })
})

const batch = BatchPolicy.make({ maxBatchSize: 4, maxBatchTimeout: 500 })

export const cases: ReadonlyArray<Case.Case> = [
  test("a batch has several messages of a FIFO group, and the first that is retried takes those behind it along", (queue) =>
    Effect.gen(function* () {
      const batches: Array<string> = []
      yield* send(queue, ["a1", "a2", "a3", "a4", "a5"])
      yield* Consumer.startBatch(queue, { batch }, ({ messages }) => {
        batches.push(messages.map(({ id }) => id).join(" "))
        for (const message of messages) {
          if (message.id === "a2" && message.attempts === 1) message.retry({ delay: 0 })
          else message.ack()
        }
      })
      yield* Wait.until(
        () => `a5, there was ${batches.join(", ")}`,
        () => batches.some((ids) => ids.endsWith("a5"))
      )
      Check.equal("the first batch", batches[0], "a1 a2 a3 a4")
      // They are given back by several calls, so that a poll may see some of them first.
      Check.equal("the others", batches.slice(1).join(" "), "a2 a3 a4 a5")
    })),
  test("a message that waits for its retry holds up its group, and no other one", (queue) =>
    Effect.gen(function* () {
      const runs: Array<string> = []
      yield* send(queue, ["a1", "a2", "b1", "b2"])
      yield* Consumer.start(queue, { concurrency: 4 }, (message) => {
        runs.push(message.id)
        if (message.id === "a1" && message.attempts === 1) message.retry({ delay: 5000 })
      })
      yield* Wait.until("a2", () => runs.includes("a2"))
      Check.equal(
        "group a",
        runs.filter((id) => id.startsWith("a")),
        ["a1", "a1", "a2"]
      )
      Check.isTrue("b2 before the retry", runs.indexOf("b2") < runs.lastIndexOf("a1"), runs)
    })),
  test("what a consumer has not handled when it ends comes to the next one in its order", (queue) =>
    Effect.gen(function* () {
      const runs: Array<string> = []
      yield* send(queue, ["a1", "a2", "a3"])
      yield* Effect.scoped(
        Effect.gen(function* () {
          yield* Consumer.start(queue, {}, (message) => {
            runs.push(message.id)
          })
          yield* Wait.until("a1", () => runs.includes("a1"))
        })
      )
      yield* Consumer.start(queue, {}, (message) => {
        runs.push(message.id)
      })
      yield* Wait.until("a3", () => runs.includes("a3"))
      Check.equal("runs", [...new Set(runs)], ["a1", "a2", "a3"])
    }))
]
