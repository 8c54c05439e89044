import { assert, describe, it } from "@effect/vitest"
import * as Schedule from "effect/Schedule"
import * as Backoff from "../../src/policy/Backoff.ts"
import * as Delay from "../../src/message/Delay.ts"
import type * as Jitter from "../../src/policy/Jitter.ts"

const rejects = (make: () => unknown, start: string) => {
  try {
    make()
  } catch (error) {
    assert.instanceOf(error, RangeError)
    const { message } = error as RangeError
    assert.isTrue(message.startsWith(start), `${message} does not start with ${start}`)
    assert.include(message, "got")
    return
  }
  assert.fail(`${start} was accepted`)
}

const bad: ReadonlyArray<readonly [string, Delay.DurationInput]> = [
  ["NaN", Number.NaN],
  ["negative", -1],
  ["a negative fraction", -0.5],
  ["Infinity", Number.POSITIVE_INFINITY],
  ["beyond 24 hours", Delay.max + 1],
  ["25 hours", "25 hours"],
  ["no duration", "soon" as Delay.DurationInput]
]

describe("refuses", () => {
  it.each(bad)("a duration that is %s", (_, input) => {
    rejects(() => Backoff.constant(input), "constant: delay")
    rejects(() => Backoff.constant(1, { max: input }), "constant: max")
    rejects(() => Backoff.linear(input), "linear: step")
    rejects(() => Backoff.exponential(input), "exponential: base")
    rejects(() => Backoff.sequence([1, input]), "sequence: delays[1]")
    rejects(() => Backoff.capped(Backoff.constant(1), input), "capped: max")
  })

  it("an exponential base of 0", () => rejects(() => Backoff.exponential(0), "exponential: base"))

  it.each([0.99, 0, -2, Number.NaN, Number.POSITIVE_INFINITY])("factor %s", (factor) =>
    rejects(() => Backoff.exponential(1, { factor }), "exponential: factor")
  )

  it.each<readonly [string, () => unknown, string]>([
    [
      "exponential",
      () => Backoff.exponential("1 second", { maxDelay: "1 hour" } as never),
      "unknown option maxDelay. Allowed: max, jitter, factor"
    ],
    ["constant", () => Backoff.constant(1, { maxx: 1 } as never), "unknown option maxx. Did you mean max?"],
    ["linear", () => Backoff.linear(1, { factor: 2 } as never), "unknown option factor. Allowed: max, jitter"],
    ["sequence", () => Backoff.sequence([1], { factor: 2 } as never), "unknown option factor. Allowed: max, jitter"],
    [
      "linear",
      () => Backoff.linear(1, "1 hour" as never),
      'options must be an object, got "1 hour". Allowed: max, jitter'
    ],
    [
      "switchAfter",
      () => Backoff.switchAfter(3, Backoff.constant(1), "1 minute" as never),
      'next must be a backoff, got "1 minute". Write a backoff such as constant("10 seconds")'
    ],
    [
      "sequence",
      () => Backoff.sequence("10 seconds" as never, "1 minute" as never),
      'delays must be an array, got "10 seconds". Write sequence(["10 seconds", "1 minute"])'
    ]
  ])("an option of %s that it does not have", (name, make, message) =>
    assert.throws(make, RangeError, `${name}: ${message}`)
  )

  it("an option of a jitter that it does not have", () =>
    assert.throws(
      () => Backoff.constant(1, { jitter: { proportional: 0.1, max: 5 } as never }),
      RangeError,
      "constant: jitter: unknown option max. Allowed: proportional"
    ))

  it.each<readonly [string, () => unknown, string]>([
    ["the delay", () => Backoff.constant("1 minute", { max: "1 second" }), "constant: max must be at least the delay"],
    ["the step", () => Backoff.linear("1 minute", { max: "1 second" }), "linear: max must be at least the step"],
    [
      "the base",
      () => Backoff.exponential("1 minute", { max: "1 second" }),
      "exponential: max must be at least the base (1m), got 1s. Raise max, or lower the base: every delay would be 1s"
    ],
    [
      "the shortest delay",
      () => Backoff.sequence(["2 minutes", 60_001], { max: 60_000 }),
      "sequence: max must be at least the shortest delay (60001ms), got 60000ms. Raise max"
    ]
  ])("a cap below %s, which would be every delay", (_, make, message) => assert.throws(make, RangeError, message))

  it.each<readonly [unknown, string]>([
    [0.2, "got 0.2. Write { proportional: 0.2 }"],
    ["ful", 'got "ful". Did you mean "full"?'],
    [() => 1, "got a function"]
  ])("the jitter %s, and shows how to write one", (jitter, message) =>
    assert.throws(() => Backoff.exponential(1, { jitter: jitter as Jitter.Jitter }), RangeError, message)
  )

  it("a factor as text, in quotes", () =>
    assert.throws(
      () => Backoff.exponential(1, { factor: "2" as never }),
      RangeError,
      'exponential: factor must be a finite number >= 1, got "2"'
    ))

  it("an empty sequence", () => rejects(() => Backoff.sequence([]), "sequence: delays"))

  it.each([0, 1.5, -1, Number.NaN, Number.POSITIVE_INFINITY])("switchAfter %s", (after) =>
    rejects(() => Backoff.switchAfter(after, Backoff.constant(1), Backoff.constant(2)), "switchAfter: after")
  )

  it.each([1.1, -0.1, Number.NaN])("proportional jitter %s", (proportional) =>
    rejects(
      () => Backoff.constant(1, { jitter: { proportional } }),
      "constant: jitter.proportional must be a number from 0 to 1"
    )
  )

  it.each(["wild", null])("the jitter %s", (jitter) =>
    // JavaScript may pass anything.
    rejects(
      () => Backoff.constant(1, { jitter: jitter as Jitter.Jitter }),
      'constant: jitter must be one of "none", "full"'
    )
  )
})

describe("fromSchedule", () => {
  const delays = (self: Backoff.Backoff, count: number) =>
    Array.from({ length: count }, (_, i) => Backoff.delayAfter(self, i + 1))

  it("takes an exponential schedule's delays, and repeats the last", () => {
    const self = Backoff.fromSchedule(Schedule.exponential("100 millis").pipe(Schedule.upTo({ times: 4 })))
    assert.deepStrictEqual(delays(self, 6), [100, 200, 400, 800, 800, 800])
  })

  it("takes an endless schedule, cut at 24 hours", () => {
    const self = Backoff.fromSchedule(Schedule.exponential("1 second"))
    assert.deepStrictEqual(delays(self, 3), [1000, 2000, 4000])
    assert.strictEqual(Backoff.delayAfter(self, 1_000_000), Delay.max)
  })

  it("takes a spaced schedule, and the options of every backoff", () => {
    const self = Backoff.fromSchedule(Schedule.spaced("2 seconds"), { max: "1 second", jitter: "full" })
    assert.strictEqual(Backoff.delayAfter(self, 50, 0.25), 250)
    assert.strictEqual(Backoff.delayAfter(self, 50, 0.75), 750)
  })

  it("draws a jittered schedule once", () => {
    const schedule = Schedule.spaced("1 second").pipe(Schedule.jittered, Schedule.upTo({ times: 3 }))
    const self = Backoff.fromSchedule(schedule)
    const taken = delays(self, 5)
    assert.isTrue(taken.every((delay) => delay >= 800 && delay <= 1200))
    assert.deepStrictEqual(delays(self, 5), taken)
    assert.deepStrictEqual(taken.slice(3), [taken[2], taken[2]])
  })

  it("refuses a schedule that ends at once", () =>
    rejects(() => Backoff.fromSchedule(Schedule.recurs(0)), "fromSchedule: schedule"))
})
