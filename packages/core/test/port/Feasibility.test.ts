import { assert, describe, it } from "@effect/vitest"
import * as Backoff from "../../src/policy/Backoff.ts"
import * as Capabilities from "../../src/port/Capabilities.ts"
import { ConfigurationError } from "../../src/options/ConfigurationError.ts"
import * as Delay from "../../src/message/Delay.ts"
import * as Feasibility from "../../src/port/Feasibility.ts"
import * as RetryPolicy from "../../src/policy/RetryPolicy.ts"
import * as ShareLimits from "../../src/policy/ShareLimits.ts"
import { plain } from "../scripted.ts"

const [minute, hour] = [60_000, 3_600_000]

const able: Capabilities.Capabilities = {
  ...plain,
  broker: "test",
  retryDelay: { native: hour, beyond: undefined },
  sendDelay: { native: 0, beyond: undefined }
}
const hopping = { ...able, retryDelay: { native: hour, beyond: "in hops of an hour" } }
const leased = (max: number) => ({ ...able, lease: { duration: minute, max } })

const requirements = (
  retry: RetryPolicy.Options,
  more: Partial<Feasibility.Requirements> = {}
): Feasibility.Requirements => ({
  retry: RetryPolicy.make(retry),
  onLimit: "fail",
  ...more
})

const none = RetryPolicy.make()
const timeout = (handlerTimeout: number): Feasibility.Requirements => ({ retry: none, handlerTimeout, onLimit: "fail" })
const Exact = { _tag: "Exact" }
const constant = (millis: number) => ({ backoff: Backoff.constant(millis) })

const tooLong = (asked: string) => ({
  _tag: "Impossible",
  why: `the policy needs delays of up to ${asked}, the broker keeps at most 1h`,
  remedy: 'Set max to 1h or less, or onLimit: "clamp"'
})

const table: ReadonlyArray<readonly [string, Feasibility.Requirements, Capabilities.Capabilities, object]> = [
  ["a backoff within reach", requirements(constant(hour)), able, { "retry.backoff": Exact }],
  ["a backoff beyond it", requirements(constant(2 * hour)), able, { "retry.backoff": tooLong("2h") }],
  [
    "delays that are rounded up",
    requirements(constant(200), { retryDelay: 1500 }),
    { ...able, retryDelay: { native: hour, beyond: undefined, step: 1000 } },
    {
      "retry.backoff": { _tag: "Emulated", how: "rounded up to whole seconds" },
      retryDelay: { _tag: "Emulated", how: "rounded up to whole seconds" }
    }
  ],
  [
    "delays of whole steps, and the shortest and longest of random ones",
    requirements({ backoff: Backoff.linear(1000, { jitter: "full" }), maxRetries: 3 }, { retryDelay: 0 }),
    { ...able, retryDelay: { native: hour, beyond: undefined, step: 1000 } },
    { "retry.backoff": Exact, retryDelay: Exact }
  ],
  [
    "one of several delays that is rounded up, in hops",
    requirements({ backoff: Backoff.sequence([2 * hour, 300]), maxRetries: 2 }),
    { ...hopping, retryDelay: { ...hopping.retryDelay, step: 250 } },
    { "retry.backoff": { _tag: "Emulated", how: "in hops of an hour; rounded up to multiples of 250ms" } }
  ],
  [
    "a backoff beyond it, cut",
    requirements(constant(2 * hour), { onLimit: "clamp" }),
    able,
    { "retry.backoff": { _tag: "Clamped", from: 2 * hour, to: hour } }
  ],
  [
    "a backoff beyond it, in hops",
    requirements(constant(2 * hour), { onLimit: "clamp" }),
    hopping,
    { "retry.backoff": { _tag: "Emulated", how: "in hops of an hour" } }
  ],
  [
    "what the last retry can reach counts",
    requirements({ maxRetries: 6, backoff: Backoff.linear("10 minutes") }),
    able,
    { "retry.backoff": Exact }
  ],
  [
    "one retry more",
    requirements({ maxRetries: 7, backoff: Backoff.linear("10 minutes") }),
    able,
    { "retry.backoff": tooLong("1h 10m") }
  ],
  [
    "jitter counts",
    requirements({ backoff: Backoff.constant(hour, { jitter: { proportional: 0.5 } }) }),
    able,
    { "retry.backoff": tooLong("1h 30m") }
  ],
  ["no retry, no delay", requirements({ maxRetries: 0, ...constant(2 * hour) }), able, { "retry.backoff": Exact }],
  [
    "an unlimited policy reaches its cap",
    requirements({ maxRetries: "unlimited", backoff: Backoff.exponential(1) }),
    able,
    { "retry.backoff": tooLong("1d") }
  ],
  ["the consumer's delay", requirements({}, { retryDelay: 2 * hour }), able, { retryDelay: tooLong("2h") }],
  ["no requirements", requirements({}), able, {}],
  ["any handler, without leases", timeout(Number.POSITIVE_INFINITY), able, { handlerTimeout: Exact }],
  ["a handler within its lease", timeout(minute), leased(hour), { handlerTimeout: Exact }],
  [
    "a handler within what can be extended",
    timeout(hour - 1),
    leased(hour),
    { handlerTimeout: { _tag: "Emulated", how: "the lease is extended while the handler runs" } }
  ],
  [
    "a handler as long as the lease can be",
    timeout(hour),
    leased(hour),
    {
      handlerTimeout: {
        _tag: "Impossible",
        why: "a handler may run for 1h, the broker's lease ends after 1h",
        remedy: "Set handlerTimeout below 1h"
      }
    }
  ],
  [
    "a parked key and limits of shares, with the reasons of the broker or general ones",
    requirements({ afterDeadLetter: "park" }, { shareLimits: ShareLimits.make({ concurrency: 1 }) }),
    { ...able, obstacles: { parkedKeys: "it has no keys" } },
    {
      "retry.afterDeadLetter": {
        _tag: "Impossible",
        why: "it has no keys",
        remedy: 'Set afterDeadLetter to "continue", or use SQLite or PostgreSQL'
      },
      shareLimits: {
        _tag: "Impossible",
        why: "the broker delivers all messages of a queue in one order",
        remedy: "Remove shareLimits, or use SQLite or PostgreSQL"
      }
    }
  ],
  [
    "both, on a broker that can",
    requirements({ afterDeadLetter: "park" }, { shareLimits: ShareLimits.make({ concurrency: 1 }) }),
    { ...able, parkedKeys: true, fairShares: true },
    { "retry.afterDeadLetter": Exact, shareLimits: Exact }
  ],
  [
    "any handler, with a lease that can be extended for ever",
    timeout(Number.POSITIVE_INFINITY),
    leased(Number.POSITIVE_INFINITY),
    { handlerTimeout: { _tag: "Emulated", how: "the lease is extended while the handler runs" } }
  ]
]

describe("check", () => {
  it.each(table)("%s", (_, requirements, capabilities, expected) => {
    const findings = Feasibility.check(requirements, capabilities).map(
      ({ field, support }) => [field, support] as const
    )
    assert.deepStrictEqual(Object.fromEntries(findings), expected)
  })
})

describe("refusal", () => {
  it("names the field, the queue, the broker, its limit and the remedy", () => {
    const error = Feasibility.refusal(Feasibility.check(requirements(constant(2 * hour)), able), able, "work")
    assert.instanceOf(error, ConfigurationError)
    assert.strictEqual(
      error?.message,
      "retry.backoff (queue work, broker test): the policy needs delays of up to 2h, the broker keeps at most 1h. " +
        'Set max to 1h or less, or onLimit: "clamp"'
    )
  })

  it("is none when all can be met", () => {
    const findings = Feasibility.check(requirements(constant(2 * hour)), hopping)
    assert.isUndefined(Feasibility.refusal(findings, hopping, "work"))
  })
})

describe("refusalOf", () => {
  const place = { key: "a" }
  it.each([
    ["a key", { place }, {}, "the broker does not keep the order of messages with a key. Send without key, or use"],
    ["fairBy", { fairBy: "a" }, {}, "the broker delivers all messages of a queue in one order. Send without fairBy"],
    [
      "a key first",
      { place, fairBy: "a" },
      { obstacles: { keyedOrder: "it forgets" } },
      "it forgets. Send without key"
    ],
    ["fairBy beside a key", { place, fairBy: "a" }, { keyedOrder: true }, "Send without fairBy"]
  ])("refuses %s", (_, message, more, expected) => {
    const error = Feasibility.refusalOf({ queue: "work", ...message }, { ...able, ...more })
    assert.strictEqual(error?.reason, "Unsupported")
    assert.include(error?.message, expected)
  })

  it.each([
    ["neither", {}, {}],
    ["both, where the broker can", { place, fairBy: "a" }, { keyedOrder: true, fairShares: true }]
  ])("accepts %s", (_, message, more) => {
    assert.isUndefined(Feasibility.refusalOf({ queue: "work", ...message }, { ...able, ...more }))
  })
})

describe("the longest delay", () => {
  it.each([
    ["native", { native: hour, beyond: undefined }, hour],
    ["native beyond 24 hours", { native: 100 * hour, beyond: undefined }, Delay.max],
    ["emulated", { native: 0, beyond: "by timers" }, Delay.max]
  ])("%s", (_, reach, expected) => {
    assert.strictEqual(Capabilities.longestRetry({ ...able, retryDelay: reach }), expected)
    assert.strictEqual(Capabilities.longestSend({ ...able, sendDelay: reach }), expected)
  })
})
