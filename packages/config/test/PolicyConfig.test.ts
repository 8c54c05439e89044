import { Backoff, BatchPolicy, ConsumerBackoff, DeadLetterBudget, RetryPolicy } from "@requeue/core"
import { type ConsumerOptions } from "@requeue/core/port"
import { assert, describe, it } from "vitest"
import * as Schema from "effect/Schema"
import * as PolicyConfig from "../src/PolicyConfig.ts"

const decode = <A, I>(schema: Schema.Codec<A, I>, json: unknown): A =>
  Schema.decodeUnknownSync(schema)(JSON.parse(JSON.stringify(json)))

describe("RetryPolicy", () => {
  const routes = { permanent: "bad", "too-old": "old", undecodable: "odd", "retries-exhausted": "worn" }
  const cases: ReadonlyArray<readonly [object, RetryPolicy.RetryPolicy]> = [
    [{}, RetryPolicy.make()],
    [{ maxRetries: 5 }, RetryPolicy.make({ maxRetries: 5 })],
    [{ maxAttempts: "unlimited", maxAge: "2 days" }, RetryPolicy.make({ maxAttempts: "unlimited", maxAge: "2 days" })],
    [{ immediate: 2, deadLetter: "x.dlq" }, RetryPolicy.make({ immediate: 2, deadLetter: "x.dlq" })],
    [{ deadLetter: "discard" }, RetryPolicy.make({ deadLetter: "discard" })],
    [{ deadLetter: { queue: "x", routes } }, RetryPolicy.make({ deadLetter: { queue: "x", routes } })],
    [
      {
        backoff: { type: "exponential", base: "1 second" },
        classify: { permanent: ["ValidationError"], drop: ["Stale"] }
      },
      RetryPolicy.make({
        backoff: Backoff.exponential("1 second"),
        classify: { permanent: ["ValidationError"], drop: ["Stale"] }
      })
    ],
    [{ preset: "webhookSender" }, RetryPolicy.webhookSender],
    [
      { preset: "nsqRequeue", maxRetries: 9 },
      { ...RetryPolicy.nsqRequeue, maxAttempts: 10, maxDeliveries: 20 }
    ],
    [
      { preset: "nsqRequeue", maxDeliveries: 5 },
      { ...RetryPolicy.nsqRequeue, maxDeliveries: 5 }
    ],
    [
      { preset: "rabbitMqGrowing", deadLetter: "x", backoff: { type: "constant", delay: 1 } },
      {
        ...RetryPolicy.rabbitMqGrowing,
        backoff: Backoff.constant(1),
        deadLetter: RetryPolicy.make({ deadLetter: "x" }).deadLetter
      }
    ]
  ]
  it.each(cases)("%j", (json, expected) => assert.deepStrictEqual(decode(PolicyConfig.RetryPolicy, json), expected))
})

describe("the others", () => {
  it("BatchPolicy", () => {
    assert.deepStrictEqual(decode(PolicyConfig.BatchPolicy, {}), BatchPolicy.make())
    const json = { maxBatchSize: 100, maxBatchTimeout: "1 second" }
    assert.deepStrictEqual(decode(PolicyConfig.BatchPolicy, json), { maxBatchSize: 100, maxBatchTimeout: 1000 })
  })

  it("ConsumerBackoff", () => {
    const options = {
      multiplier: 500,
      maxBackoffDuration: "1 minute",
      strategy: "full-jitter",
      recovery: "stepwise"
    } as const
    assert.deepStrictEqual(decode(PolicyConfig.ConsumerBackoff, {}), ConsumerBackoff.make())
    assert.deepStrictEqual(decode(PolicyConfig.ConsumerBackoff, options), ConsumerBackoff.make(options))
    for (const form of [
      { form: "nsq" },
      { form: "consecutive", failures: 10 },
      { form: "ratio", failureRatio: 0.3, minAttempts: 10, window: "1 minute" },
      { form: "ratio", window: { attempts: 50 } }
    ] as const) {
      const all = { ...options, ...form }
      assert.deepStrictEqual(decode(PolicyConfig.ConsumerBackoff, all), ConsumerBackoff.make(all))
    }
  })

  it("DeadLetterBudget", () => {
    assert.deepStrictEqual(decode(PolicyConfig.DeadLetterBudget, { max: 5 }), DeadLetterBudget.make({ max: 5 }))
    const json = { max: 5, perSuccess: 1 }
    assert.deepStrictEqual(
      decode(PolicyConfig.DeadLetterBudget, json),
      DeadLetterBudget.make({ max: 5, perSuccess: 1 })
    )
  })

  it("Consumer, with everything", () => {
    const options: ConsumerOptions.Options = decode(PolicyConfig.Consumer, {
      retry: { preset: "cloudflareQueues" },
      retryDelay: "5 seconds",
      batch: { maxBatchSize: 5 },
      concurrency: 4,
      handlerTimeout: "unlimited",
      consumerBackoff: {},
      deadLetterBudget: { max: 10 },
      drainTimeout: 1000,
      onLimit: "clamp"
    })
    assert.deepStrictEqual(options, {
      retry: RetryPolicy.cloudflareQueues,
      retryDelay: "5 seconds",
      batch: BatchPolicy.make({ maxBatchSize: 5 }),
      concurrency: 4,
      handlerTimeout: "unlimited",
      consumerBackoff: ConsumerBackoff.make(),
      deadLetterBudget: DeadLetterBudget.make({ max: 10 }),
      drainTimeout: 1000,
      onLimit: "clamp"
    })
    assert.deepStrictEqual(decode(PolicyConfig.Consumer, {}), {})
  })
})
