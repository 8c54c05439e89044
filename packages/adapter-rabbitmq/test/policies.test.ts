/** Policies of the server whose pattern matches the adapter's own queues. */
import { assert, describe, it } from "@effect/vitest"
import * as Result from "effect/Result"
import { Backoff, RetryPolicy } from "@requeue/core"
import { Metadata } from "@requeue/core/port"
import { toDelivery } from "../src/internal/consume/toDelivery.ts"
import type { KnownPolicies } from "../src/internal/inspect/management.ts"
import * as Policies from "../src/internal/inspect/policies.ts"
import * as PolicyRules from "../src/internal/inspect/policyRules.ts"
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

/** The harm that one policy does to all queues of the plan: queue, whether delays end early, and the text without its remedy. */
const harms = (policy: Readonly<Record<string, unknown>>) => {
  const known = plan().objects.flatMap((object) =>
    object._tag === "Queue" ? [{ name: object.name, type: "quorum" as const, arguments: object.arguments, policy }] : []
  )
  return harmsKnown({ queues: known, rules: undefined })
}

const harmsKnown = (known: KnownPolicies) =>
  Policies.harmsIn(plan(), known, "4.3.6").map(({ detail, isEarly, queue }) => {
    const [text, remedy] = detail.split(". ")
    assert.strictEqual(remedy, "Exclude the queue from the pattern of the policy or operator policy")
    return [queue, isEarly, text]
  })
const queues = (policy: Readonly<Record<string, unknown>>) => harms(policy).map(([queue]) => queue)
const undelivered = "requeue.v1.q.undelivered"

describe("policies on our own queues", () => {
  it("a shorter TTL ends delays early, and takes letters and undelivered messages away", () => {
    assert.deepStrictEqual(harms({ "message-ttl": 1000 }), [
      [
        undelivered,
        false,
        `queue ${undelivered}: messages that stay in it for 1s, retries too, are lost, by a policy of the server`
      ],
      [
        "orders.dlq",
        false,
        'queue orders.dlq: messages that stay in it for 1s, retries too, go to exchange "requeue.v1.dead", by a policy of the server'
      ],
      [rung, true, `queue ${rung}: a policy of the server ends delays of 5s after 1s`]
    ])
  })

  it("a routing key for dead letters leads delayed messages to another queue", () => {
    assert.deepStrictEqual(harms({ "dead-letter-routing-key": "elsewhere" }), [
      [
        rung,
        false,
        `queue ${rung}: a policy of the server gives its messages the routing key "elsewhere", which misroutes them`
      ]
    ])
  })

  it("limits and expiry are reported; a TTL that is longer than the rung's, and what changes nothing, is not", () => {
    assert.deepStrictEqual(queues({ "max-length": 10 }), [undelivered])
    assert.deepStrictEqual(queues({ expires: 60_000 }), [undelivered, "orders.dlq", rung])
    assert.deepStrictEqual(queues({ "delivery-limit": 5 }), [undelivered, "orders.dlq"])
    assert.notInclude(queues({ "message-ttl": 6000 }), rung)
    for (const policy of [
      {},
      { "delivery-limit": 2_000_000 },
      { "dead-letter-exchange": "e", "queue-leader-locator": "balanced" }
    ])
      assert.deepStrictEqual(queues(policy), [])
  })

  it("a policy is known before its queues exist, and the server's answer counts for those that do", () => {
    const policy = { vhost: "/", name: "p", pattern: "^requeue\\.v1\\.q\\.", "apply-to": "queues", priority: 0 }
    const rules = PolicyRules.make([{ ...policy, definition: { "message-ttl": 300 } }], [])
    const early = harmsKnown({ queues: [], rules }).filter(([, isEarly]) => isEarly)
    assert.deepStrictEqual(early[0], [
      rung,
      true,
      `queue ${rung}: a policy of the server ends delays of 5s after 300ms`
    ])
    assert.include(early.map(([queue]) => queue).join(), "requeue.v1.q.level.50.9")
    const queues = [{ name: rung, type: "quorum" as const, arguments: {}, policy: {} }]
    assert.notDeepInclude(
      harmsKnown({ queues, rules }).map(([queue]) => queue),
      rung
    )
    assert.include(
      harmsKnown({ queues: [{ ...queues[0]!, policy: undefined }], rules }).map(([queue]) => queue),
      rung
    )
  })

  it("of several policies that match, one of the highest priority holds, and the operator's beside it", () => {
    const rule = (pattern: string, definition: object, others: object = {}) => ({ pattern, definition, ...others })
    const rules = PolicyRules.make(
      [
        rule("^orders", { "delivery-limit": 9 }, { "apply-to": "all", priority: 1 }),
        rule("^orders", { "delivery-limit": 7, "max-length": 5 }, { "apply-to": "quorum_queues", priority: 5 }),
        rule("^orders", { "ha-mode": "all", "delivery-limit": 1 }, { "apply-to": "queues", priority: 9 }),
        rule("^orders", { "delivery-limit": 2 }, { "apply-to": "exchanges", priority: 10 }),
        rule("(?<bad", { "delivery-limit": 3 }, { "apply-to": "queues", priority: 11 }),
        "no policy"
      ],
      [rule("orders$", { "delivery-limit": 8, "max-length": 4, expires: 6 }, { "apply-to": "queues", priority: 0 })]
    )
    assert.deepStrictEqual(PolicyRules.definitionFor(rules, "orders", "quorum"), {
      "delivery-limit": 7,
      "max-length": 4,
      expires: 6
    })
    assert.deepStrictEqual(PolicyRules.definitionFor(rules, "orders.dlq", "quorum"), {
      "delivery-limit": 7,
      "max-length": 5
    })
    assert.deepStrictEqual(PolicyRules.definitionFor(rules, "other", "quorum"), {})
    assert.deepStrictEqual(PolicyRules.definitionFor(PolicyRules.make(undefined, undefined), "orders", "quorum"), {})
  })

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
    const early = new Set([rung])
    assert.strictEqual(toDelivery(message, { ...source, early }).metadata.notBefore, now + 5000)
    // Of the levels that a message has passed, one that ends early is enough.
    message.properties.headers["x-death"].push({ reason: "expired", queue: "requeue.v1.q.level.50.0" })
    assert.strictEqual(toDelivery(message, { ...source, early }).metadata.notBefore, now + 5000)
  })
})
