/** Cases of FIFO queues, which this adapter alone has: those that run on a server too, and others. */
import { type Case, Check, Wait } from "@requeue/conformance"
import { Consumer } from "@requeue/core"
import * as Effect from "effect/Effect"
import { cases as shared, send, test } from "../../../../adapter-sqs/test/real/cases/fifo.ts"

export const cases: ReadonlyArray<Case.Case> = [
  ...shared,
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
