/** A policy of the server that changes a queue while it is consumed. */
import { DeadLetters, RetryPolicy } from "@requeue/core"
import * as Effect from "effect/Effect"
import { assert, test } from "vitest"
import { policyOf } from "../real/adoptedBooks.ts"
import { shared } from "../real/server.ts"
import { consume, no, type Run } from "./traps/trap.ts"
import { on, outgoing, queueName, until } from "../world.ts"

const { broker, url } = await shared()
const management = broker.managementUrl ?? "http://127.0.0.1:15672"

// A consumer looks every half minute.
test.runIf(broker.managementUrl !== undefined)(
  "a smaller delivery limit is found by a consumer that runs; until then the server's letters tell of it",
  { timeout: 120_000 },
  async () => {
    const queue = queueName("limited")
    const runs: Array<Run> = []
    const retry = RetryPolicy.make({ maxRetries: 30 })
    await on({ url, management }, (one) =>
      Effect.gen(function* () {
        yield* consume(queue, runs, { retry }, no)
        yield* Effect.promise(() => policyOf(management, queue, { "delivery-limit": 10 }))
        const letters = yield* DeadLetters.make(`${queue}.dlq`)
        let sent = 0
        const sendOne = Effect.gen(function* () {
          const id = `m${++sent}`
          yield* one.publish([outgoing(queue, id)])
          yield* until(`the end of ${id}`, async () => (await Effect.runPromise(letters.count)) === sent)
          return runs.filter((run) => run.id === id).length
        })
        yield* until("a message with all of its runs", async () => (await Effect.runPromise(sendOne)) === 31, 90_000)
        const [first] = yield* letters.list({ limit: 1 })
        assert.deepInclude(first?.origin, { queue, reason: "too-many-deliveries" })
        const groups = yield* letters.group({ filter: ({ metadata }) => metadata.id === `m${sent}` })
        assert.strictEqual(groups[0]?.reason, "retries-exhausted")
      })
    )
  }
)
