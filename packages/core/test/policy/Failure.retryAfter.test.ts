import { assert, describe, it } from "@effect/vitest"
import * as Delay from "../../src/message/Delay.ts"
import * as Failure from "../../src/policy/Failure.ts"

const now = Date.parse("2026-01-01T00:00:00Z")

/** A date of a subclass, which may return anything. */
const dateOf = (getTime: () => unknown): Date => Object.assign(new Date(now), { getTime })

describe("parseRetryAfter", () => {
  const later = (millis: number) => new Date(now + millis)
  const cases: ReadonlyArray<readonly [string, unknown, Delay.Delay | undefined]> = [
    ["seconds", 120, 120_000],
    ["0", 0, 0],
    ["a fraction, rounded up", 0.0001, 1],
    ["digits", "120", 120_000],
    ["digits with room", " 1.5 ", 1500],
    ["an HTTP date", "Thu, 01 Jan 2026 00:01:00 GMT", 60_000],
    ["an HTTP date of 1985", "Thursday, 01-Jan-26 00:01:00 GMT", 60_000],
    ["an HTTP date of asctime", "Thu Jan  1 00:01:00 2026", 60_000],
    ["an ISO date", "2026-01-01T00:01:00Z", 60_000],
    ["a Date", later(5000), 5000],
    ["a date in the past", later(-5000), 0],
    ["an HTTP date in the past", "Sun, 06 Nov 1994 08:49:37 GMT", 0],
    ["more than 24 hours", 90_000, Delay.max],
    ["a date beyond 24 hours", later(Delay.max + 1), Delay.max],
    ["Infinity", Number.POSITIVE_INFINITY, Delay.max],
    ["a negative number", -1, undefined],
    ["negative digits", "-5", undefined],
    ["NaN", Number.NaN, undefined],
    ["garbage", "soon", undefined],
    ["garbage that ends in a number", "try again in 5", undefined],
    ["empty text", "", undefined],
    ["an invalid Date", new Date(Number.NaN), undefined],
    ["what only looks like a Date", Object.create(Date.prototype), undefined],
    ["a Date that returns a BigInt", dateOf(() => 5n), undefined],
    ["a Date that returns a symbol", dateOf(() => Symbol("now")), undefined],
    [
      "a Date that throws",
      dateOf(() => {
        throw new Error("no")
      }),
      undefined
    ],
    ["a boolean", true, undefined],
    ["null", null, undefined],
    ["undefined", undefined, undefined]
  ]
  it.each(cases)("%s", (_, value, expected) => assert.strictEqual(Failure.parseRetryAfter(value, now), expected))
})
