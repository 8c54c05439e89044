/** Policies of the server whose pattern matches the adapter's own queues. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import { Backoff, Metadata, RetryPolicy } from "@requeue/core"
import { toDelivery } from "../src/internal/consume/toDelivery.ts"
import type { Management } from "../src/internal/inspect/management.ts"
import * as Policies from "../src/internal/inspect/policies.ts"
import * as Plan from "../src/RabbitMqPlan.ts"
import * as RabbitMqOptions from "../src/RabbitMqOptions.ts"

const settings = Result.getOrThrow(RabbitMqOptions.decode())
const rung = "requeue.v1.q.delay.5000"

const plan = () => {
  const made = Plan.make(
    {
      queue: "orders",
      retry: RetryPolicy.make({ maxRetries: 1, backoff: Backoff.constant(5000) }),
      deadLetterQueues: ["orders.dlq"]
    },
    settings,
    "4.3.6"
  )
  if (made instanceof Error) throw made
  return made
}

/** A management interface that shows one policy on all queues of the plan. */
const managed = (policy: Readonly<Record<string, unknown>>): Management =>
  ({
    queues: Effect.succeed(
      plan().objects.flatMap((object) =>
        object._tag === "Queue" ? [{ name: object.name, arguments: object.arguments, policy }] : []
      )
    )
  }) as unknown as Management

const harms = (policy: Readonly<Record<string, unknown>>) =>
  Effect.map(Policies.inspect(managed(policy), plan(), "4.3.6"), (all) =>
    all.map(({ detail, isEarly, queue }) => [queue, isEarly, detail.split(". ")[0]])
  )

describe("policies on our own queues", () => {
  it.effect("a shorter TTL ends delays early, and takes letters and undelivered messages away", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(yield* harms({ "message-ttl": 1000 }), [
        [
          "requeue.v1.q.undelivered",
          false,
          "queue requeue.v1.q.undelivered: messages that wait for 1s, retries too, are lost, by a policy of the server"
        ],
        [
          "orders.dlq",
          false,
          'queue orders.dlq: messages that wait for 1s, retries too, go to exchange "requeue.v1.dead", by a policy of the server'
        ],
        [rung, true, `queue ${rung}: a policy of the server ends delays of 5s after 1s`]
      ])
    })
  )

  it.effect("limits and expiry are reported, and a TTL that is longer than the rung's is not", () =>
    Effect.gen(function* () {
      const queues = (policy: Readonly<Record<string, unknown>>) =>
        Effect.map(harms(policy), (all) => all.map(([queue]) => queue))
      assert.deepStrictEqual(yield* queues({ "max-length": 10 }), ["requeue.v1.q.undelivered"])
      assert.deepStrictEqual(yield* queues({ expires: 60_000 }), ["requeue.v1.q.undelivered", "orders.dlq", rung])
      assert.notInclude(yield* queues({ "message-ttl": 6000 }), rung)
      assert.deepStrictEqual(yield* queues({}), [])
      assert.deepStrictEqual(yield* Policies.inspect(undefined, plan(), "4.3.6"), [])
    })
  )

  it("the record of a queue whose delays end early is no delay that was served", () => {
    const now = 1_000_000
    const metadata = { ...Metadata.make("a", now), notBefore: now + 5000 }
    const message = {
      content: Buffer.from("x"),
      fields: { deliveryTag: 1, redelivered: false, exchange: "", routingKey: "orders" },
      properties: {
        headers: { [Metadata.header]: Metadata.encode(metadata), "x-death": [{ reason: "expired", queue: rung }] }
      }
    }
    const source = { type: "quorum", serverVersion: "4.3.6", keepsNotBefore: false, now: () => now } as const
    assert.strictEqual(toDelivery(message, source).metadata.notBefore, 0)
    assert.strictEqual(toDelivery(message, { ...source, early: new Set([rung]) }).metadata.notBefore, now + 5000)
  })
})
