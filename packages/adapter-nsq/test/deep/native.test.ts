/** Facts of NSQ that a handler may read. */
import { Producer, RetryPolicy } from "@requeue/core"
import { DeadLetters } from "@requeue/operations"
import * as Effect from "effect/Effect"
import { assert, test } from "vitest"
import { NsqNative } from "../../src/index.ts"
import { server } from "./server.ts"
import { consume, no, on, queueName, until } from "../world.ts"

const one = await server()

test("a message tells its nsqd, topic, channel and count at each attempt, and so does its dead letter", async () => {
  const queue = queueName("facts")
  const told: Array<NsqNative.NsqNative | undefined> = []
  const before = Date.now()
  await on(one.wired, () =>
    Effect.gen(function* () {
      yield* consume(
        `${queue}/billing`,
        [],
        { retry: RetryPolicy.make({ maxRetries: 1 }), retryDelay: 10 },
        (message) => {
          told.push(NsqNative.of(message))
          return no()
        }
      )
      const producer = yield* Producer.make<string>(queue)
      yield* producer.send("x")
      yield* until("two runs", () => told.length === 2)
      const letters = yield* DeadLetters.make(`${queue}/billing.dlq`)
      yield* until("the dead letter", async () => {
        const [letter] = await Effect.runPromise(letters.list())
        if (letter !== undefined) told.push(NsqNative.of(letter))
        return letter !== undefined
      })
    })
  )
  const [first, second, letter] = told
  assert.deepInclude(first, { topic: queue, channel: "billing", attempts: 1 })
  assert.deepStrictEqual({ ...second, attempts: 1 }, { ...first })
  assert.strictEqual(second?.attempts, 2)
  assert.deepInclude(letter, { topic: `${queue}.billing.dlq`, channel: "requeue", nsqd: first?.nsqd ?? "" })
  assert.lengthOf(first?.id ?? "", 16)
  assert.match(first?.nsqd ?? "", /^[^:]+:\d+$/)
  assert.isAtLeast(first?.timestamp ?? 0, before - 1)
})
