import { Metadata } from "@requeue/core/port"
import * as Option from "effect/Option"
import { assert, describe, it } from "vitest"
import * as LetterFilter from "../src/LetterFilter.ts"

const all: LetterFilter.Filter = {
  reason: [],
  error: Option.none(),
  origin: Option.none(),
  id: [],
  header: [],
  since: Option.none(),
  olderThan: Option.none(),
  newerThan: Option.none()
}

const now = 1_000_000

const letter: LetterFilter.Subject = {
  id: "order-12",
  metadata: Metadata.make("order-12", 0),
  headers: { tenant: "acme", note: "a=b" },
  origin: {
    queue: "orders",
    attempts: 3,
    reason: "permanent",
    at: now - 60_000,
    error: {
      name: "HttpError",
      message: "503 Service Unavailable",
      stack: "    at call (/app/pay.js:1:2)\ncaused by: Error: connect ECONNREFUSED 10.0.0.7:443"
    }
  }
}

const foreign: LetterFilter.Subject = {
  id: "b",
  metadata: Metadata.make("b", now - 60_000),
  origin: undefined,
  headers: {}
}

describe("a filter", () => {
  it.each<readonly [boolean, boolean, Partial<LetterFilter.Filter>]>([
    [true, true, {}],
    [true, false, { reason: ["too-old", "permanent"] }],
    [false, false, { reason: ["too-old"] }],
    [true, false, { error: Option.some("httperror") }],
    [true, false, { error: Option.some("503 service") }],
    [true, false, { error: Option.some("econnrefused") }],
    [false, false, { error: Option.some("pay.js") }],
    [false, false, { error: Option.some("404") }],
    [true, false, { error: Option.some(": ") }],
    [true, false, { origin: Option.some("orders") }],
    [false, false, { origin: Option.some("orders.dlq") }],
    [true, true, { id: ["order-12", "b"] }],
    [true, false, { id: ["order-1*"] }],
    [false, false, { id: ["order-1", "order-2*"] }],
    [true, false, { header: ["tenant"] }],
    [true, false, { header: ["tenant=acme", "note=a=b"] }],
    [false, false, { header: ["tenant=acme", "note=a"] }],
    [false, false, { header: ["toString"] }],
    [true, true, { since: Option.some({ time: now - 60_000 }) }],
    [false, false, { since: Option.some({ time: now - 59_999 }) }],
    [true, true, { since: Option.some({ ago: 60_000 }) }],
    [false, false, { since: Option.some({ ago: 59_999 }) }],
    [false, true, { id: ["b"] }],
    [true, true, { olderThan: Option.some(59_999) }],
    [false, false, { olderThan: Option.some(60_000) }],
    [true, true, { newerThan: Option.some(60_001) }],
    [false, false, { newerThan: Option.some(60_000) }],
    [false, false, { reason: ["permanent"], id: ["b"] }]
  ])("means a letter: %s, and a foreign message: %s, with %j", (known, other, asked) => {
    const isMeant = LetterFilter.matches({ ...all, ...asked }, now)
    assert.deepStrictEqual([isMeant(letter), isMeant(foreign)], [known, other])
    assert.strictEqual(LetterFilter.isEmpty({ ...all, ...asked }), Object.keys(asked).length === 0)
  })

  it.each<Partial<LetterFilter.Filter>>([
    { newerThan: Option.some(1000) },
    { olderThan: Option.some(1000) },
    { since: Option.some({ ago: 1000 }) },
    { since: Option.some({ time: 0 }) }
  ])("of times means no letter of which nobody knows when it was given up: %j", (asked) => {
    const undated = { ...foreign, metadata: Metadata.undated("b", now) }
    assert.isFalse(LetterFilter.matches({ ...all, ...asked }, now)(undated))
    assert.isTrue(LetterFilter.matches(all, now)(undated))
  })
})
