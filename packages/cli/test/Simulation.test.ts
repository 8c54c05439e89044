import { Backoff, ConsumerBackoff, RetryPolicy } from "@requeue/core"
import * as fc from "fast-check"
import { assert, describe, it } from "vitest"
import * as Simulation from "../src/Simulation.ts"

const patient = RetryPolicy.make({ maxRetries: "unlimited", backoff: Backoff.constant("1 second") })

const calm: Simulation.Scenario = {
  retry: patient,
  retryDelay: 0,
  consumerBackoff: ConsumerBackoff.off,
  rate: 10,
  outage: 60_000,
  handlerTime: 10,
  concurrency: 4,
  seed: 1
}

const jitter = fc.constantFrom("none" as const, "full" as const, "equal" as const, "decorrelated" as const)

const backoff = fc.oneof(
  fc.constant(undefined),
  fc.tuple(fc.integer({ min: 0, max: 60_000 }), jitter).map(([ms, jitter]) => Backoff.constant(ms, { jitter })),
  fc
    .tuple(fc.integer({ min: 1, max: 5000 }), jitter)
    .map(([ms, jitter]) => Backoff.exponential(ms, { jitter, max: "1 minute" }))
)

const retry = fc
  .record({
    maxRetries: fc.oneof(fc.integer({ min: 0, max: 8 }), fc.constant("unlimited" as const)),
    maxAge: fc.oneof(fc.constant(undefined), fc.integer({ min: 0, max: 120_000 })),
    immediate: fc.integer({ min: 0, max: 3 }),
    backoff,
    deadLetter: fc.constantFrom(undefined, "discard", "elsewhere")
  })
  .map((options) => RetryPolicy.make(options))

const scenario: fc.Arbitrary<Simulation.Scenario> = fc.record({
  retry,
  // A policy without any delay runs its handlers as fast as they are: few of them, for a short time.
  retryDelay: fc.integer({ min: 0, max: 2000 }),
  consumerBackoff: fc.constantFrom(
    ConsumerBackoff.off,
    ConsumerBackoff.make(),
    ConsumerBackoff.make({ recovery: "stepwise", strategy: "full-jitter", maxBackoffDuration: "10 seconds" })
  ),
  rate: fc.double({ min: 0.1, max: 20, noNaN: true }),
  outage: fc.integer({ min: 1, max: 60_000 }),
  handlerTime: fc.integer({ min: 1, max: 200 }),
  concurrency: fc.integer({ min: 5, max: 20 }),
  seed: fc.nat()
})

describe("a simulated outage", () => {
  it("neither loses nor invents a message", () => {
    fc.assert(
      fc.property(scenario, (given) => {
        const { arrived, deadLettered, discarded, left, succeeded } = Simulation.run(given)
        assert.strictEqual(arrived, succeeded + deadLettered + discarded + left)
        for (const count of [succeeded, deadLettered, discarded, left]) assert.isAtLeast(count, 0)
      })
    )
  })

  it("is the same for the same seed", () => {
    fc.assert(
      fc.property(scenario, (given) => {
        assert.deepStrictEqual(Simulation.run(given), Simulation.run(given))
      })
    )
  })

  it("is another one for another seed", () => {
    assert.notDeepEqual(Simulation.run(calm), Simulation.run({ ...calm, seed: 2 }))
  })

  it("runs no message's handler more often than the policy allows", () => {
    fc.assert(
      fc.property(scenario, (given) => {
        const { arrived, handlerRuns } = Simulation.run(given)
        if (arrived > 0) assert.isAtMost(handlerRuns, arrived * RetryPolicy.describe(given.retry).handlerRuns)
      })
    )
  })

  it("has no dead letter when the policy outlasts it, and recovers", () => {
    fc.assert(
      fc.property(fc.nat(), fc.integer({ min: 1, max: 60_000 }), (seed, outage) => {
        const outcome = Simulation.run({ ...calm, seed, outage })
        assert.strictEqual(outcome.deadLettered + outcome.discarded, 0)
        assert.isDefined(outcome.recovery)
      })
    )
  })

  it("has a dead letter for every message that arrived in time to use up its retries", () => {
    const retry = RetryPolicy.make({ maxRetries: 2, backoff: Backoff.constant("10 seconds") })
    const { arrived, deadLettered, recovery } = Simulation.run({ ...calm, retry, concurrency: 100 })
    // Given up after 20 s: of 60 s of arrivals those of the first 40 s, less what is in progress at the end.
    assert.approximately(deadLettered / arrived, 40 / 60, 0.15)
    assert.isAtMost(recovery ?? Number.POSITIVE_INFINITY, 10_000 + calm.handlerTime)
  })

  it("counts what a policy discards apart from its dead letters", () => {
    const kept = Simulation.run({ ...calm, retry: RetryPolicy.make() })
    const discarded = Simulation.run({ ...calm, retry: RetryPolicy.make({ deadLetter: "discard" }) })
    assert.isAbove(kept.deadLettered, 0)
    assert.deepStrictEqual([discarded.deadLettered, discarded.discarded], [0, kept.deadLettered])
    assert.strictEqual(kept.discarded, 0)
  })

  it("takes what the consumer backoff holds back out of the dead letters", () => {
    const hasty = { ...calm, retry: RetryPolicy.make({ maxRetries: 3 }) }
    assert.isAbove(Simulation.run(hasty).deadLettered, 100)
    const careful = Simulation.run({ ...hasty, consumerBackoff: ConsumerBackoff.make() })
    assert.isBelow(careful.deadLettered, 10)
    assert.isDefined(careful.recovery)
  })

  it("never recovers when the handlers cannot keep up", () => {
    const { left, recovery } = Simulation.run({ ...calm, rate: 10, handlerTime: 1000, concurrency: 1, outage: 600_000 })
    assert.isUndefined(recovery)
    assert.isAbove(left, 1000)
  })

  it("has more arrivals at a higher rate", () => {
    const [slow, fast] = [5, 50].map((rate) => Simulation.run({ ...calm, rate }).arrived)
    assert.approximately(fast! / slow!, 10, 3)
  })
})
