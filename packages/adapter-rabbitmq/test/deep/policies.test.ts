/** Policies of the server that change queues while they are used. */
import { Backoff, RetryPolicy } from "@requeue/core"
import { DeadLetters } from "@requeue/operations"
import * as Effect from "effect/Effect"
import { assert, test } from "vitest"
import { adapter } from "../../src/index.ts"
import { policyOf, put } from "../real/adoptedBooks.ts"
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

test.runIf(broker.managementUrl !== undefined)(
  "a shorter TTL on delay queues brings no retry early, and verify calls it bad",
  { timeout: 120_000 },
  async () => {
    const [queue, prefix] = [queueName("early"), queueName("p").slice(0, 20)]
    const runs: Array<Run> = []
    const delay = 3000
    const retry = RetryPolicy.make({ maxRetries: 1, backoff: Backoff.constant(delay) })
    const options = { url, management, prefix }
    // Its queues are there, and the policy as well, before the consumer that is asked about.
    await on(options, () => consume(queue, [], { retry }))
    const rung = `${prefix}.v1.q.delay.${delay}`
    await policyOf(management, rung, { "message-ttl": 500 })
    await on(options, (one) =>
      Effect.gen(function* () {
        yield* consume(queue, runs, { retry }, no)
        yield* one.publish([outgoing(queue, "a")])
        yield* until("the retry", () => runs.length === 2)
      })
    )
    const [first, second] = runs
    assert.isAtLeast(second!.at - first!.at, delay)
    assert.strictEqual(second!.attempts, 2)
    const { findings } = await Effect.runPromise(
      Effect.scoped(
        Effect.flatMap(adapter.operations!.operate(new URL(url), { management, prefix }), (operator) =>
          operator.inspect({ queue, retry })
        )
      )
    )
    const detail = `queue ${rung}: a policy of the server ends delays of 3s after 500ms`
    assert.isTrue(
      findings.some((one) => one.verdict === "bad" && one.detail.startsWith(detail)),
      JSON.stringify(findings)
    )
  }
)

test.runIf(broker.managementUrl !== undefined)(
  "a policy on queues that do not exist yet is known at the first start",
  { timeout: 120_000 },
  async () => {
    const [queue, prefix] = [queueName("first"), queueName("p").slice(0, 20)]
    const delay = 3000
    const retry = RetryPolicy.make({ maxRetries: 1, backoff: Backoff.constant(delay) })
    const policy = (name: string, definition: object) =>
      put(management, `policies/%2F/${name}`, { pattern: `^${name}$`, definition, "apply-to": "queues" })
    await policy(`${prefix}.v1.q.delay.${delay}`, { "message-ttl": 500 })
    const runs: Array<Run> = []
    await on({ url, management, prefix }, (one) =>
      Effect.gen(function* () {
        yield* consume(queue, runs, { retry }, no)
        yield* one.publish([outgoing(queue, "a")])
        yield* until("the retry", () => runs.length === 2)
      })
    )
    assert.isAtLeast(runs[1]!.at - runs[0]!.at, delay)
    const limited = queueName("none-yet")
    await policy(limited, { "delivery-limit": 0 })
    await on({ url, management, prefix }, () =>
      Effect.gen(function* () {
        const refused = yield* Effect.flip(consume(limited, [], { retry: RetryPolicy.make({ maxRetries: 30 }) }, no))
        assert.include(String(refused), "the server stops redelivering a message after 1 deliveries")
      })
    )
  }
)
