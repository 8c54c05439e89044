import { assert, describe, it } from "@effect/vitest"
import * as Duration from "effect/Duration"
import * as fc from "fast-check"
import * as Delay from "../../src/message/Delay.ts"

const accepted: ReadonlyArray<readonly [string, Delay.DurationInput, Delay.Delay]> = [
  ["milliseconds", 1500, 1500],
  ["0", 0, 0],
  ["-0", -0, 0],
  ["a fraction, rounded up", 0.2, 1],
  ["text", "10 seconds", 10_000],
  ["text in hours", "24 hours", Delay.max],
  ["a Duration", Duration.minutes(5), 300_000],
  ["nanoseconds as a bigint, rounded up", 1n, 1],
  ["an object", { minutes: 5 }, 300_000],
  ["an object with a unit left out", { minutes: undefined, seconds: 5 }, 5000],
  ["seconds and nanoseconds", [1, 1], 1001],
  ["24 hours", Delay.max, Delay.max]
]

const circular: Record<string, unknown> = {}
circular["self"] = circular

const refused: ReadonlyArray<readonly [string, unknown]> = [
  ["NaN", Number.NaN],
  ["negative", -1],
  ["a negative fraction", -0.4],
  ["Infinity", Number.POSITIVE_INFINITY],
  ["-Infinity", Number.NEGATIVE_INFINITY],
  ["a millisecond too much", Delay.max + 1],
  ["a fraction too much", Delay.max + 0.1],
  ["negative text", "-1 second"],
  ["text too long", "25 hours"],
  ["no duration", "soon"],
  ["digits without a unit", "10"],
  ["empty text", ""],
  ["a negative bigint", -1n],
  ["null", null],
  ["undefined", undefined],
  ["a boolean", true],
  ["a symbol", Symbol("soon")],
  ["a circular object", circular],
  ["an object that holds a bigint", { soon: 1n }],
  ["an object without a unit", {}],
  ["an object with an unknown unit", { minute: 5 }],
  ["an object with NaN", { minutes: Number.NaN }],
  ["a pair with NaN", [1, Number.NaN]],
  ["a Date", new Date(0)],
  ["infinity", Duration.infinity]
]

describe("parse", () => {
  it.each(accepted)("takes %s", (_, input, expected) => assert.strictEqual(Delay.parse("send.delay", input), expected))

  it.each(refused)("refuses %s", (_, input) => {
    try {
      Delay.parse("send.delay", input as Delay.DurationInput)
    } catch (error) {
      assert.instanceOf(error, Delay.InvalidDelay)
      assert.strictEqual((error as Delay.InvalidDelay)._tag, "InvalidDelay")
      assert.match((error as Delay.InvalidDelay).message, /^send\.delay: a delay is a duration from 0 to 1d .*, got /)
      return
    }
    assert.fail("accepted")
  })

  it("never shortens, and never lengthens by a whole millisecond", () =>
    fc.assert(
      fc.property(fc.double({ min: 0, max: Delay.max, noNaN: true }), (millis) => {
        const delay = Delay.parse("delay", millis)
        assert.isTrue(Number.isSafeInteger(delay) && delay >= millis && delay - 1 < millis)
      })
    ))

  it.each<readonly [unknown, string]>([
    ["5000", 'got "5000". Write the number 5000 for milliseconds, or text with a unit, such as "5000 ms"'],
    [() => 5, 'got a function. Write a number of milliseconds, or text such as "10 seconds" or "5 minutes"'],
    [[], "got an array. Write a number of milliseconds"]
  ])("shows %o as it was written", (got, message) =>
    assert.throws(() => Delay.parse("send.delay", got as never), Delay.InvalidDelay, message)
  )

  it.each<readonly [unknown, string | undefined]>([
    [10, 'Write 10000 or "10 seconds": a number counts milliseconds'],
    [1, 'Write 1000 or "1 second": a number counts milliseconds'],
    [61, undefined],
    [0, undefined],
    [60_001, undefined],
    ["10ms", undefined]
  ])("advises for %o, where 1 second to 1 minute are meant", (value, remedy) =>
    assert.strictEqual(Delay.kind(1000, 60_000).remedy?.(value), remedy)
  )

  it("names a broker's own limit", () => {
    const error = new Delay.InvalidDelay({ field: "message.retry.delay", got: "13 hours", limit: 12 * 3_600_000 })
    assert.strictEqual(
      error.message,
      'message.retry.delay: a delay is a duration from 0 to 12h (a number counts milliseconds), got "13 hours"'
    )
  })
})

describe("constrain", () => {
  it("takes both bounds, and refuses what is beyond them", () => {
    assert.strictEqual(Delay.constrain("X.make: field", 1, 1, 5), 1)
    assert.strictEqual(Delay.constrain("X.make: field", 4.5, 1, 5), 5)
    assert.throws(
      () => Delay.constrain("X.make: field", 0, 1, 5),
      RangeError,
      "X.make: field: must be a duration from 1ms"
    )
    assert.throws(() => Delay.constrain("X.make: field", 6, 1, 5), RangeError, "to 5ms, got 6")
    assert.throws(() => Delay.constrain("X.make: field", 6, 7, Number.POSITIVE_INFINITY), RangeError, "or Infinity")
  })
})

describe("first", () => {
  const cases: ReadonlyArray<readonly [ReadonlyArray<Delay.Delay | undefined>, Delay.Delay]> = [
    [[], 0],
    [[undefined, undefined], 0],
    [[undefined, 5, 3], 5],
    [[0, 5], 0]
  ]
  it.each(cases)("of %j is %j", (candidates, expected) => assert.strictEqual(Delay.first(...candidates), expected))
})

describe("format", () => {
  const cases: ReadonlyArray<readonly [number, string]> = [
    [0, "0ms"],
    [999, "999ms"],
    [999.6, "1s"],
    [1000, "1s"],
    [1500, "1.5s"],
    [59_940, "59.9s"],
    [59_999, "1m"],
    [60_000, "1m"],
    [90_000, "1m 30s"],
    [119_600, "2m"],
    [3_599_600, "1h"],
    [5_400_000, "1h 30m"],
    [86_400_000, "1d"],
    [90_061_000, "1d 1h"],
    [Number.POSITIVE_INFINITY, "unlimited"]
  ]
  it.each(cases)("%s is %s", (millis, expected) => assert.strictEqual(Delay.format(millis), expected))

  it("is off by less than a twentieth, and never empty", () =>
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 10 * Delay.max }), (millis) => {
        const unit = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 }
        const parts = [...Delay.format(millis).matchAll(/([\d.]+)(ms|[smhd])/g)]
        const read = parts.reduce((sum, [, count, name]) => sum + Number(count) * unit[name as keyof typeof unit], 0)
        assert.isAtMost(Math.abs(read - millis), millis / 20)
      }),
      { numRuns: 2000 }
    ))
})

describe("one grammar", () => {
  it.each([
    ["10s", 10_000],
    ["100ms", 100],
    ["5m", 300_000],
    ["2h", 7_200_000],
    ["1d", Delay.max],
    ["2.5h", 9_000_000],
    ["1 ms", 1],
    ["1h 30m", 5_400_000]
  ] as const)("%s is what it says", (text, millis) => {
    assert.strictEqual(Delay.toMillis(text as Delay.DurationInput), millis)
    assert.strictEqual(Delay.ofText(` ${text} `), millis)
    assert.strictEqual(Delay.kind(0, Delay.max).read?.(text), millis)
    assert.isTrue(Delay.kind(0, Delay.max).holds(text))
  })

  it.each(["10x", "s", "10s5m", "-5s", "5s-", "1h30", "10 S", ""])("%j is none", (text) => {
    assert.isNaN(Delay.toMillis(text as Delay.DurationInput))
    assert.isNaN(Delay.ofText(text))
  })

  it("has everything that is printed", () =>
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 10 * Delay.max }), (millis) => {
        const read = Delay.toMillis(Delay.format(millis) as Delay.DurationInput)
        assert.isAtMost(Math.abs(read - millis), millis / 20)
      })
    ))
})
