/** Receives whose answer is lost. SQS has given the messages away, and hides them. */
import { Consumer } from "@requeue/core"
import * as Effect from "effect/Effect"
import { assert, test } from "vitest"
import { strict } from "./strict.ts"
import { consume, ids, on, outgoing, publishAll, queueName, until, type Run } from "../real/world.ts"

const { another } = await strict()

/** As long as a lease lasts, nobody else gets the messages: no test waits for so long. */
const lease = 3_600_000

test.concurrent.each([
  ["once", 1],
  ["as often as the SDK asks", 3],
  ["even more often", 4]
])("a receive of a FIFO queue whose answer is lost %s is asked again, and holds up no group", async (_, times) => {
  await using own = await another()
  const queue = `${queueName("lost")}.fifo`
  const runs: Array<Run> = []
  await on({ url: own.url, visibilityTimeout: lease }, (broker) =>
    Effect.gen(function* () {
      yield* publishAll(broker, queue, ids(2))
      const fault = own.lose({ action: "ReceiveMessage", times }, "reset")
      yield* consume(queue, runs)
      yield* until("both", () => runs.length === 2)
      assert.strictEqual(fault.left(), 0)
    })
  )
  // SQS counts such a receive once.
  assert.deepStrictEqual(
    runs.map(({ attempts, id }) => [id, attempts]),
    ids(2).map((id) => [id, 1])
  )
})

test.concurrent("a receive that SQS does not take for a repetition is a new one", async () => {
  await using own = await another()
  const queue = `${queueName("new")}.fifo`
  const runs: Array<Run> = []
  await on({ url: own.url }, (broker) =>
    Effect.gen(function* () {
      yield* broker.publish([outgoing(queue, "m1")])
      own.fail({ action: "ReceiveMessage", times: 1 }, "AttemptNotRetryable")
      const consumer = yield* Consumer.start(queue, {}, ({ attempts, id }) => {
        runs.push({ id, attempts, at: Date.now() })
      })
      yield* until("it", () => runs.length === 1)
      assert.strictEqual(consumer.health().state, "running")
    })
  )
})
