import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import * as Backoff from "../../src/policy/Backoff.ts"
import * as Failure from "../../src/policy/Failure.ts"
import * as RetryPolicy from "../../src/policy/RetryPolicy.ts"
import { backoff, random } from "../arbitraries.ts"

const failure = Failure.make(new Error("boom"), 0)

const policy = fc
  .record(
    {
      maxRetries: fc.integer({ min: 0, max: 12 }),
      maxAge: fc.integer({ min: 0, max: 200_000_000 }),
      immediate: fc.integer({ min: 0, max: 3 }),
      backoff
    },
    { requiredKeys: ["maxRetries"] }
  )
  .map((options) => RetryPolicy.make(options))

/** A message that always fails: the delays that it is retried with, as `decide` says, one delivery after the other. */
const replay = (self: RetryPolicy.RetryPolicy, random: () => number, defaultDelay = 0) => {
  const delays: Array<number> = []
  for (let age = 0, attempts = 1; ; attempts++) {
    const facts = { queue: "q", attempts, age, delay: undefined, asked: false, failure, defaultDelay, random: random() }
    const settlement = RetryPolicy.decide(self, facts)
    if (settlement._tag !== "Retry") return delays
    delays.push(settlement.delay)
    age += settlement.delay
  }
}

const sum = (numbers: ReadonlyArray<number>) => numbers.reduce((a, b) => a + b, 0)

describe("schedule", () => {
  it("is what decide does with the least randomness", () =>
    fc.assert(
      fc.property(policy, fc.nat({ max: 5000 }), (self, defaultDelay) => {
        const steps = RetryPolicy.schedule(self, defaultDelay)
        assert.deepStrictEqual(
          steps.map(({ delay: [low] }) => low),
          replay(self, () => 0, defaultDelay)
        )
        assert.deepStrictEqual(
          steps.map(({ attempt }) => attempt),
          steps.map((_, i) => i + 1)
        )
      })
    ))

  it("is what decide does with the most randomness", () =>
    fc.assert(
      fc.property(policy, (self) => {
        const delays = replay(self, () => 1 - Number.EPSILON / 2)
        RetryPolicy.schedule(self)
          .slice(0, delays.length)
          .forEach(({ delay: [, high] }, i) => {
            assert.isAtMost(delays[i]!, high)
            assert.isAtLeast(delays[i]!, high - 1)
          })
      })
    ))

  it("of an unlimited policy ends after 100 steps", () =>
    assert.lengthOf(RetryPolicy.schedule(RetryPolicy.make({ maxRetries: "unlimited" })), 100))
})

describe("a description", () => {
  it("bounds the handler runs and the time of every message", () =>
    fc.assert(
      fc.property(policy, fc.array(random, { minLength: 1, maxLength: 20 }), (self, draws) => {
        let drawn = 0
        const delays = replay(self, () => draws[drawn++ % draws.length]!)
        const { handlerRuns, worstCase } = RetryPolicy.describe(self)
        assert.isAtMost((delays.length + 1) * (self.immediate + 1), handlerRuns)
        assert.isAtMost(sum(delays), worstCase)
      })
    ))

  const cases: ReadonlyArray<readonly [string, RetryPolicy.Options, number, string]> = [
    ["none", { maxRetries: 0 }, 0, "0 retries; at most 1 handler run over 0ms"],
    ["the default", {}, 0, "3 retries: 0ms, 0ms, 0ms; at most 4 handler runs over 0ms"],
    ["the consumer's delay", { maxRetries: 2 }, 5000, "2 retries: 5s, 5s; at most 3 handler runs over 10s"],
    [
      "immediate runs",
      { maxRetries: 2, immediate: 2, backoff: Backoff.exponential("1 second") },
      0,
      "2 retries: 1s, 2s; at most 9 handler runs over 3s"
    ],
    [
      "jitter",
      { maxRetries: 1, backoff: Backoff.constant("1 minute", { jitter: "equal" }) },
      0,
      "1 retry: 30s..1m; at most 2 handler runs over 1m"
    ],
    [
      "more than eight",
      { maxRetries: 10, backoff: Backoff.constant("1 second") },
      0,
      "10 retries: 1s, 1s, 1s, 1s, 1s, 1s, 1s, 1s, …; at most 11 handler runs over 10s"
    ],
    [
      "unlimited",
      { maxRetries: "unlimited", backoff: Backoff.constant("1 hour") },
      0,
      "unlimited retries: 1h, 1h, 1h, 1h, 1h, 1h, 1h, 1h, …; at most unlimited handler runs over unlimited"
    ]
  ]
  it.each(cases)("%s", (_, options, delay, text) =>
    assert.strictEqual(RetryPolicy.describe(RetryPolicy.make(options), delay).text, text)
  )

  const worst: ReadonlyArray<readonly [string, RetryPolicy.Options, number]> = [
    [
      "unlimited, but for its age",
      { maxRetries: "unlimited", maxAge: "1 hour", backoff: Backoff.constant("1 second") },
      3_600_000
    ],
    ["1000 retries", { maxRetries: 1000, backoff: Backoff.constant("1 second") }, 1_000_000],
    [
      "1000 retries of growing delay",
      { maxRetries: 1000, backoff: Backoff.linear("1 second", { max: "1 minute" }) },
      58_230_000
    ],
    [
      "1000 retries within an hour",
      { maxRetries: 1000, maxAge: "1 hour", backoff: Backoff.constant("1 minute") },
      3_600_000
    ],
    ["1000 retries at once", { maxRetries: 1000 }, 0]
  ]
  it.each(worst)("worst case of %s", (_, options, expected) =>
    assert.strictEqual(RetryPolicy.describe(RetryPolicy.make(options)).worstCase, expected)
  )
})
