import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import * as Outage from "../../src/explain/Outage.ts"
import { Backoff, ConsumerBackoff, RateLimit, RetryPolicy } from "@requeue/core"

const patient = RetryPolicy.make({ maxRetries: "unlimited", backoff: Backoff.constant("1 second") })

const calm: Outage.Scenario = {
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

const scenario: fc.Arbitrary<Outage.Scenario> = fc.record({
  retry,
  // A policy without any delay runs its handlers as fast as they are: few of them, for a short time.
  retryDelay: fc.integer({ min: 0, max: 2000 }),
  consumerBackoff: fc.constantFrom(
    ConsumerBackoff.off,
    ConsumerBackoff.nsq(),
    ConsumerBackoff.consecutive(),
    ConsumerBackoff.ratio(),
    ConsumerBackoff.nsq({ recovery: "stepwise", strategy: "full-jitter", maxBackoffDuration: "10 seconds" })
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
        const { arrived, deadLettered, discarded, left, succeeded } = Outage.run(given)
        assert.strictEqual(arrived, succeeded + deadLettered + discarded + left)
        for (const count of [succeeded, deadLettered, discarded, left]) assert.isAtLeast(count, 0)
      })
    )
  })

  it("is the same for the same seed", () => {
    fc.assert(
      fc.property(scenario, (given) => {
        assert.deepStrictEqual(Outage.run(given), Outage.run(given))
      })
    )
  })

  it("is another one for another seed", () => {
    assert.notDeepEqual(Outage.run(calm), Outage.run({ ...calm, seed: 2 }))
  })

  it("runs no message's handler more often than the policy allows", () => {
    fc.assert(
      fc.property(scenario, (given) => {
        const { arrived, handlerRuns } = Outage.run(given)
        if (arrived > 0) assert.isAtMost(handlerRuns, arrived * RetryPolicy.describe(given.retry).handlerRuns)
      })
    )
  })

  it("has no dead letter when the policy outlasts it, and recovers", () => {
    fc.assert(
      fc.property(fc.nat(), fc.integer({ min: 1, max: 60_000 }), (seed, outage) => {
        const outcome = Outage.run({ ...calm, seed, outage })
        assert.strictEqual(outcome.deadLettered + outcome.discarded, 0)
        assert.isDefined(outcome.recovery)
      })
    )
  })

  it("has a dead letter for every message that arrived in time to use up its retries", () => {
    const retry = RetryPolicy.make({ maxRetries: 2, backoff: Backoff.constant("10 seconds") })
    const { arrived, deadLettered, recovery } = Outage.run({ ...calm, retry, concurrency: 100 })
    // Given up after 20 s: of 60 s of arrivals those of the first 40 s, less what is in progress at the end.
    assert.approximately(deadLettered / arrived, 40 / 60, 0.15)
    assert.isAtMost(recovery ?? Number.POSITIVE_INFINITY, 10_000 + calm.handlerTime)
  })

  it("counts what a policy discards apart from its dead letters", () => {
    const kept = Outage.run({ ...calm, retry: RetryPolicy.make() })
    const discarded = Outage.run({ ...calm, retry: RetryPolicy.make({ deadLetter: "discard" }) })
    assert.isAbove(kept.deadLettered, 0)
    assert.deepStrictEqual([discarded.deadLettered, discarded.discarded], [0, kept.deadLettered])
    assert.strictEqual(kept.discarded, 0)
  })

  it("takes what the consumer backoff holds back out of the dead letters", () => {
    const hasty = { ...calm, retry: RetryPolicy.make({ maxRetries: 3 }) }
    assert.isAbove(Outage.run(hasty).deadLettered, 100)
    for (const form of ConsumerBackoff.forms) {
      const careful = Outage.run({ ...hasty, consumerBackoff: ConsumerBackoff.make({ form }) })
      assert.isBelow(careful.deadLettered, 10, form)
      assert.isDefined(careful.recovery)
    }
  })

  it("never recovers when the handlers cannot keep up", () => {
    const { left, recovery } = Outage.run({ ...calm, rate: 10, handlerTime: 1000, concurrency: 1, outage: 600_000 })
    assert.isUndefined(recovery)
    assert.isAbove(left, 1000)
  })

  it("has more arrivals at a higher rate", () => {
    const [slow, fast] = [5, 50].map((rate) => Outage.run({ ...calm, rate }).arrived)
    assert.approximately(fast! / slow!, 10, 3)
  })
})

describe("the load on what is down", () => {
  it("is every handler run, in the slice in which it begins", () => {
    fc.assert(
      fc.property(scenario, fc.double({ min: 0.01, max: 1, noNaN: true }), (given, share) => {
        const { backlog, handlerRuns, load } = Outage.run({ ...given, share })
        assert.strictEqual(
          load.reduce((sum, runs) => sum + runs, 0),
          handlerRuns
        )
        assert.isAtLeast(load.length, backlog.length)
      })
    )
  })

  it("is less where fewer runs fail, and nothing is retried but what failed", () => {
    const [some, all] = [0.3, 1].map((share) => Outage.run({ ...calm, share }))
    assert.isBelow(some!.retries, all!.retries / 2)
    assert.isAbove(some!.retries, 0)
    for (const { arrived, handlerRuns, left, retries } of [some!, all!]) {
      assert.isAtMost(handlerRuns - retries, arrived)
      assert.isAtLeast(handlerRuns - retries, arrived - left)
    }
  })
})

describe("a rate limit", () => {
  it("bounds the load, and makes the recovery longer", () => {
    const limited = { ...calm, concurrency: 20, rateLimit: RateLimit.make({ max: 12, per: "1 second" }) }
    const [free, bound] = [Outage.run({ ...calm, concurrency: 20 }), Outage.run(limited)]
    assert.isAbove(Math.max(...free.load), Math.max(...bound.load))
    for (const runs of bound.load) assert.isAtMost(runs, 12 * (Math.ceil(bound.slice / 1000) + 1))
    assert.isAbove(bound.recovery!, free.recovery!)
    assert.strictEqual(bound.left + bound.succeeded, bound.arrived)
  })
})

describe("an immediate retry under a rate limit", () => {
  it("needs room: without it, the failure counts", () => {
    const retry = RetryPolicy.make({ maxRetries: 0, immediate: 3 })
    const failing = { ...calm, retry, rate: 0.5, share: 1 }
    const limited = { ...failing, rateLimit: RateLimit.make({ max: 1, per: "1 second" }) }
    const [free, bound] = [Outage.run(failing), Outage.run(limited)]
    assert.isAbove(free.handlerRuns, free.arrived)
    assert.strictEqual(bound.handlerRuns, bound.arrived - bound.left)
  })
})

describe("a simulation that is bounded", () => {
  // Retries at once, without end: handlers run as fast as they can.
  const hot = { ...calm, retry: RetryPolicy.make({ maxRetries: "unlimited" }), handlerTime: 1, outage: 86_400_000 }

  it("ends early, and says so", () => {
    const { events, isCut, recovery } = Outage.run(hot, 10_000)
    assert.deepStrictEqual([events, isCut, recovery], [10_000, true, undefined])
    assert.isFalse(Outage.run(calm).isCut)
  })

  it("lets others in after each thousand events", () => {
    assert.strictEqual([...Outage.steps(hot, 10_000)].length, 10)
  })
})

describe("a question", () => {
  const asked = { rate: 10, outage: 60_000, handlerTime: 100, seed: 1 }

  it("is about the queue's own options", () => {
    const options = { retry: patient, retryDelay: "2 seconds", consumerBackoff: ConsumerBackoff.make() } as const
    assert.deepStrictEqual(Outage.scenario(options, asked), {
      ...asked,
      concurrency: 2,
      retry: patient,
      retryDelay: 2000,
      consumerBackoff: ConsumerBackoff.make()
    })
    assert.deepInclude(Outage.scenario(options, { ...asked, consumerBackoff: "off" }), {
      consumerBackoff: ConsumerBackoff.off
    })
  })

  it("is about as many handlers as the queue's options have, unless it names a number", () => {
    assert.deepInclude(Outage.scenario({ concurrency: 10 }, asked), { concurrency: 10 })
    assert.deepInclude(Outage.scenario({ concurrency: 10 }, { ...asked, concurrency: 3 }), { concurrency: 3 })
    assert.deepInclude(Outage.scenario({ concurrency: 1 }, asked), {
      field: "concurrency",
      detail: "1 handler of 100ms cannot keep up with 10 messages a second"
    })
  })

  it("may name another form of backoff, and keeps the queue's own options of the same form", () => {
    const own = ConsumerBackoff.consecutive({ failures: 9 })
    for (const [consumerBackoff, form, expected] of [
      [own, "consecutive", own],
      [own, "ratio", ConsumerBackoff.ratio()],
      [undefined, "nsq", ConsumerBackoff.nsq()],
      [ConsumerBackoff.off, "nsq", ConsumerBackoff.nsq()],
      [undefined, undefined, ConsumerBackoff.off]
    ] as const) {
      assert.deepInclude(Outage.scenario({ consumerBackoff }, { ...asked, consumerBackoff: form }), {
        consumerBackoff: expected
      })
    }
  })

  it("has no answer where handlers cannot keep up, or messages are too many", () => {
    assert.deepInclude(Outage.scenario({}, { ...asked, concurrency: 1 }), { field: "concurrency" })
    assert.deepInclude(Outage.scenario({}, asked, 599), { field: "rate" })
    const rateLimit = { max: 10, per: "1 second" } as const
    assert.deepInclude(Outage.scenario({ rateLimit }, asked), {
      field: "rate",
      detail: "a rate limit of 10 runs in 1s cannot keep up with 10 messages a second"
    })
    const slower = { ...asked, rate: 9, outage: 100_000 }
    assert.deepInclude(Outage.scenario({ rateLimit }, slower), { rateLimit: { max: 10, per: 1000 } })
  })
})
