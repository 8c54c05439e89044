import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import * as Backoff from "../../src/policy/Backoff.ts"
import * as Delay from "../../src/message/Delay.ts"
import { attempts, backoff, jitter, millis, random } from "../arbitraries.ts"

const runs = { numRuns: 2000 }

const delays = (self: Backoff.Backoff, count: number, random = 0) =>
  Array.from({ length: count }, (_, i) => Backoff.delayAfter(self, i + 1, random))

/** The same backoff without any jitter. */
const undisturbed = ({ curve, max }: Backoff.Backoff): Backoff.Backoff => ({
  curve: curve._tag === "Switch" ? { ...curve, first: undisturbed(curve.first), next: undisturbed(curve.next) } : curve,
  jitter: "none",
  max
})

describe("laws", () => {
  it("a delay is a whole number from 0 to the cap, and within its range", () =>
    fc.assert(
      fc.property(backoff, attempts, random, (self, attempts, random) => {
        const delay = Backoff.delayAfter(self, attempts, random)
        const [low, high] = Backoff.range(self, attempts)
        assert.isTrue(Number.isSafeInteger(delay) && !Object.is(delay, -0))
        assert.isTrue(0 <= low && low <= delay && delay <= high && high <= self.max && self.max <= Delay.max)
      }),
      runs
    ))

  it("longest is an upper bound of every attempt", () =>
    fc.assert(
      fc.property(backoff, attempts, (self, attempts) => {
        const longest = Backoff.longest(self)
        assert.isTrue(Number.isSafeInteger(longest) && longest <= self.max)
        assert.isAtMost(Backoff.range(self, attempts)[1], longest)
      }),
      runs
    ))

  it("more randomness never shortens a delay", () =>
    fc.assert(
      fc.property(backoff, attempts, random, random, (self, attempts, a, b) => {
        const [low, high] = [Math.min(a, b), Math.max(a, b)]
        assert.isAtMost(Backoff.delayAfter(self, attempts, low), Backoff.delayAfter(self, attempts, high))
      }),
      runs
    ))

  it("undisturbed linear and exponential backoffs never shrink", () =>
    fc.assert(
      fc.property(millis, fc.double({ min: 1, max: 4, noNaN: true }), attempts, (delay, factor, attempts) => {
        for (const self of [Backoff.linear(delay), Backoff.exponential(Math.max(1, delay), { factor })]) {
          assert.isAtMost(Backoff.delayAfter(self, attempts), Backoff.delayAfter(self, attempts + 1))
        }
      }),
      runs
    ))

  it("factor 1.5 grows strictly until the cap: nothing is truncated", () =>
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 5000 }), millis, (base, more) => {
        const max = Math.min(Delay.max, base + more)
        const taken = delays(Backoff.exponential(base, { factor: 1.5, max }), 60)
        taken.slice(1).forEach((delay, i) => assert.isTrue(delay === max || delay > taken[i]!))
      })
    ))

  it("a cap makes no delay longer, and changes nothing that it does not reach", () =>
    fc.assert(
      fc.property(backoff, millis, attempts, random, (self, max, attempts, random) => {
        const delay = Backoff.delayAfter(self, attempts, random)
        const capped = Backoff.delayAfter(Backoff.capped(self, max), attempts, random)
        assert.isAtMost(capped, Math.min(max, delay))
        if (Backoff.range(self, attempts)[1] <= max) assert.strictEqual(capped, delay)
      }),
      runs
    ))

  it("without jitter, capping equals capping the delay", () =>
    fc.assert(
      fc.property(backoff, millis, attempts, (drawn, max, attempts) => {
        const self = undisturbed(drawn)
        const expected = Math.min(max, Backoff.delayAfter(self, attempts))
        assert.strictEqual(Backoff.delayAfter(Backoff.capped(self, max), attempts), expected)
      }),
      runs
    ))

  it("its range is tight: the least and the greatest random number give its ends", () =>
    fc.assert(
      fc.property(backoff, attempts, (self, attempts) => {
        const ends = [0, 1 - Number.EPSILON / 2].map((random) => Backoff.delayAfter(self, attempts, random))
        assert.deepStrictEqual(ends, [...Backoff.range(self, attempts)])
      }),
      runs
    ))

  it("attempts that are counted wrongly give a delay all the same", () =>
    fc.assert(
      fc.property(backoff, fc.double(), random, (self, attempts, random) => {
        const delay = Backoff.delayAfter(self, attempts, random)
        const [low, high] = Backoff.range(self, attempts)
        assert.isTrue(Number.isSafeInteger(delay) && 0 <= low && low <= delay && delay <= high && high <= self.max)
      }),
      runs
    ))

  it("a switch starts its second backoff at its first delay", () =>
    fc.assert(
      fc.property(
        backoff,
        backoff,
        fc.integer({ min: 1, max: 50 }),
        attempts,
        random,
        (first, then, after, n, random) => {
          const self = Backoff.switchAfter(after, first, then)
          const inner = n <= after ? Backoff.delayAfter(first, n, random) : Backoff.delayAfter(then, n - after, random)
          assert.strictEqual(Backoff.delayAfter(self, n, random), inner)
        }
      )
    ))

  it("is data: it survives JSON", () =>
    fc.assert(
      fc.property(backoff, attempts, random, (self, attempts, random) => {
        const copy = JSON.parse(JSON.stringify(self)) as Backoff.Backoff
        assert.deepStrictEqual(copy, self)
        assert.strictEqual(Backoff.delayAfter(copy, attempts, random), Backoff.delayAfter(self, attempts, random))
      })
    ))

  it("proportional jitter stays within its share", () =>
    fc.assert(
      fc.property(millis, fc.double({ min: 0, max: 1, noNaN: true }), random, (delay, proportional, random) => {
        const got = Backoff.delayAfter(Backoff.constant(delay, { jitter: { proportional } }), 1, random)
        assert.isAtLeast(got, Math.min(Delay.max, Math.floor(delay * (1 - proportional))))
        assert.isAtMost(got, Math.ceil(delay * (1 + proportional)) + 1)
      })
    ))
})

describe("examples", () => {
  const cases: ReadonlyArray<readonly [string, Backoff.Backoff, number, ReadonlyArray<number>]> = [
    ["constant", Backoff.constant("10 seconds"), 0, [10_000, 10_000, 10_000]],
    ["constant 0", Backoff.constant(0), 0.9, [0, 0, 0]],
    ["linear", Backoff.linear("90 seconds", { max: "4 minutes" }), 0, [90_000, 180_000, 240_000, 240_000]],
    ["exponential", Backoff.exponential("1 second", { max: "5 seconds" }), 0, [1000, 2000, 4000, 5000, 5000]],
    ["factor 1.5, rounded up", Backoff.exponential(1, { factor: 1.5 }), 0, [1, 2, 3, 4, 6, 8]],
    ["factor 1", Backoff.exponential(7, { factor: 1 }), 0, [7, 7, 7]],
    ["sequence, the last repeats", Backoff.sequence([3, 1, 2]), 0, [3, 1, 2, 2, 2]],
    [
      "10 s twice, then 15 min",
      Backoff.switchAfter(2, Backoff.constant("10 seconds"), Backoff.constant("15 minutes")),
      0,
      [10_000, 10_000, 900_000, 900_000]
    ],
    ["full", Backoff.linear(1000, { jitter: "full" }), 0.25, [250, 500, 750]],
    ["equal", Backoff.linear(1000, { jitter: "equal" }), 0.5, [750, 1500, 2250]],
    ["decorrelated", Backoff.linear(1000, { jitter: "decorrelated" }), 0.5, [2000, 2000, 3500, 5000]],
    ["proportional, low", Backoff.constant(1000, { jitter: { proportional: 0.25 } }), 0, [750, 750]],
    ["proportional, high", Backoff.constant(1000, { jitter: { proportional: 0.25 } }), 0.75, [1125, 1125]],
    [
      "floating-point dust is not rounded up",
      Backoff.constant(10_000, { jitter: { proportional: 0.18 } }),
      1,
      [11_800]
    ],
    ["nor in a factor", Backoff.exponential(1000, { factor: 1.1 }), 0, [1000, 1100, 1210, 1331]],
    ["base, cap, then jitter", Backoff.capped(Backoff.constant(1000, { jitter: "full" }), 600), 0.5, [300, 300]],
    ["equal below the cap", Backoff.capped(Backoff.constant(1000, { jitter: "equal" }), 600), 0.5, [450, 450]],
    [
      "decorrelated below the cap",
      Backoff.linear(1000, { max: 2000, jitter: "decorrelated" }),
      0.5,
      [1500, 1500, 1500]
    ],
    [
      "proportional at the cap",
      Backoff.linear(400, { max: 1000, jitter: { proportional: 0.2 } }),
      0.5,
      [400, 800, 900]
    ],
    [
      "a cap around a switch",
      Backoff.capped(Backoff.switchAfter(1, Backoff.constant(100), Backoff.linear(1000, { jitter: "full" })), 500),
      0.5,
      [100, 250, 250]
    ]
  ]
  it.each(cases)("%s", (_, self, random, expected) =>
    assert.deepStrictEqual(delays(self, expected.length, random), expected)
  )

  it("never leaves its limits, however late the attempt", () => {
    assert.strictEqual(Backoff.delayAfter(Backoff.exponential("1 second"), 1e6, 0.999), Delay.max)
    assert.strictEqual(Backoff.delayAfter(Backoff.linear("1 day", { jitter: "decorrelated" }), 1e6, 0.999), Delay.max)
  })

  it("makes every jitter, and refuses what is none", () => {
    fc.assert(fc.property(jitter, (jitter) => assert.deepStrictEqual(Backoff.constant(1, { jitter }).jitter, jitter)))
  })
})
