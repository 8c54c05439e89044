import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import * as RateLimit from "../../src/policy/RateLimit.ts"
import * as RateLimitState from "../../src/policy/RateLimitState.ts"

describe("make", () => {
  it("takes a number and a duration, and keeps a built limit", () => {
    const limit = RateLimit.make({ max: 10, per: "1 second" })
    assert.deepStrictEqual(limit, { max: 10, per: 1000 })
    assert.deepStrictEqual(RateLimit.make(limit), limit)
  })

  it.each<[unknown, string]>([
    [{ max: 0, per: "1 second" }, "RateLimit.make: max must be a whole number from 1 to 10000, got 0"],
    [{ max: 1.5, per: 10 }, "RateLimit.make: max must be a whole number from 1 to 10000, got 1.5"],
    [{ max: 10_001, per: 10 }, "RateLimit.make: max must be a whole number from 1 to 10000, got 10001"],
    [{ max: 1, per: 0 }, "RateLimit.make: per must be a duration from 1ms to 1d, got 0"],
    [{ max: 1, per: "2 days" }, 'RateLimit.make: per must be a duration from 1ms to 1d, got "2 days"'],
    [{ per: 10 }, "RateLimit.make: max must be a whole number from 1 to 10000, got undefined"],
    [{ max: 1 }, "RateLimit.make: per must be a duration from 1ms to 1d, got undefined"],
    [{ max: 1, per: 10, burst: 2 }, "RateLimit.make: unknown option burst"]
  ])("refuses %o", (options, message) => {
    let thrown: unknown
    try {
      RateLimit.make(options as RateLimit.Options)
    } catch (error) {
      thrown = error
    }
    assert.instanceOf(thrown, RangeError)
    assert.include(String(thrown), message)
  })
})

const limit = fc.record({ max: fc.integer({ min: 1, max: 5 }), per: fc.integer({ min: 1, max: 50 }) })
/** Milliseconds between one arrival and the next. */
const gaps = fc.array(fc.oneof(fc.constant(0), fc.integer({ min: 0, max: 60 })), { maxLength: 60 })

/** When the runs begin, of messages that arrive with these gaps and begin as soon as the limit allows. */
const begun = (of: RateLimit.RateLimit, between: ReadonlyArray<number>): ReadonlyArray<number> => {
  let [state, now, arrival] = [RateLimitState.initial, 0, 0]
  return between.map((gap) => {
    arrival += gap
    now = Math.max(now, arrival)
    const { room, wait } = RateLimitState.decide(of, state, now)
    if (room === 0) now += wait
    state = RateLimitState.begin(RateLimitState.at(of, state, now), now)
    return now
  })
}

describe("the limit", () => {
  it("lets at most max runs begin in any window, and each one as soon as it may", () =>
    fc.assert(
      fc.property(limit, gaps, (of, between) => {
        const times = begun(of, between)
        let arrival = 0
        for (const [index, at] of times.entries()) {
          arrival += between[index]!
          const before = times[index - of.max]
          // All runs after the one that is `max` before it, and it, are in a window when it begins earlier than that.
          const allowed = before === undefined ? 0 : before + of.per
          assert.strictEqual(at, Math.max(arrival, allowed, times[index - 1] ?? 0))
        }
      })
    ))

  it("has the room that is left of the runs within the window, and waits for the first of them", () =>
    fc.assert(
      fc.property(limit, gaps, fc.nat({ max: 100 }), (of, between, later) => {
        const times = begun(of, between)
        const state = times.reduce((before, at) => RateLimitState.begin(before, at), RateLimitState.initial)
        const now = (times.at(-1) ?? 0) + later
        const within = times.filter((at) => at + of.per > now)
        assert.deepStrictEqual(RateLimitState.decide(of, state, now), {
          room: of.max - within.length,
          wait: within.length === 0 ? Number.POSITIVE_INFINITY : within[0]! + of.per - now
        })
        assert.strictEqual(RateLimitState.at(of, state, now).count, within.length)
      })
    ))
})
