/** Notifications, cursors, and the SQLSTATE of an error, which are pure. */
import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import { newsOf, payloads } from "../src/internal/connect/notifier.ts"
import { stateOf } from "../src/internal/toBrokerError.ts"
import * as Cursor from "../src/internal/consume/cursor.ts"

describe("notifications", () => {
  const news = fc.array(fc.tuple(fc.string({ unit: "grapheme", maxLength: 600 }), fc.nat()), { maxLength: 60 })

  it("fit into payloads of PostgreSQL, and are read as the first due time of each queue", () => {
    fc.assert(
      fc.property(news, (all) => {
        const sent = payloads(all)
        assert.isTrue(sent.every((payload) => Buffer.byteLength(payload) < 8000))
        const first = new Map<string, number>()
        for (const [queue, from] of all) first.set(queue, Math.min(from, first.get(queue) ?? from))
        assert.deepStrictEqual(sent.flatMap(newsOf), [...first])
      })
    )
  })

  it("of other programs on the channel are ignored", () => {
    for (const payload of ["", "hello", "{}", "null", '[["a"]]', '[["a","1"]]', "[1]"]) {
      assert.deepStrictEqual(newsOf(payload), [])
    }
  })
})

describe("a cursor", () => {
  const beginning = { at: -1, seq: Number.MAX_SAFE_INTEGER }

  it("begins after the last message that was claimed, and every second at the start", () => {
    const cursor = Cursor.make()
    assert.deepStrictEqual(cursor.start(0), beginning)
    cursor.claimed({ at: 5, seq: 3 }, 10)
    assert.deepStrictEqual(cursor.start(20), { at: 5, seq: 3 })
    cursor.claimed(undefined, 30)
    assert.deepStrictEqual(cursor.start(1000), { at: 5, seq: 3 })
    assert.deepStrictEqual(cursor.start(1010), beginning)
  })

  it("begins at the start less often if such a claim is slow", () => {
    const cursor = Cursor.make()
    cursor.start(0)
    cursor.claimed({ at: 5, seq: 3 }, 400)
    assert.deepStrictEqual(cursor.start(8399), { at: 5, seq: 3 })
    assert.deepStrictEqual(cursor.start(8400), beginning)
  })

  it("goes back for a message that is due before it, also if the news arrives while a claim runs", () => {
    const cursor = Cursor.make()
    cursor.start(0)
    cursor.claimed({ at: 5, seq: 3 }, 1)
    cursor.lower(5)
    assert.deepStrictEqual(cursor.start(2), { at: 4, seq: Number.MAX_SAFE_INTEGER })
    cursor.lower(2)
    cursor.claimed({ at: 9, seq: 7 }, 3)
    assert.deepStrictEqual(cursor.start(4), { at: 1, seq: Number.MAX_SAFE_INTEGER })
    cursor.lower(undefined)
    assert.deepStrictEqual(cursor.start(5), beginning)
  })
})

describe("the SQLSTATE", () => {
  const ofServer = Object.assign(new Error("no transaction"), { severity: "ERROR", code: "25P01" })

  it.each([
    ["of the server's error", ofServer],
    ["of one that Drizzle has wrapped", new Error("failed query", { cause: ofServer })],
    [
      "of one that Effect's SqlClient has wrapped",
      { _tag: "SqlError", reason: { _tag: "UnknownError", cause: ofServer } }
    ],
    [
      "of one that Prisma has wrapped",
      Object.assign(new Error("raw query failed"), {
        code: "P2010",
        meta: { driverAdapterError: new Error("no transaction", { cause: ofServer }) }
      })
    ]
  ])("%s", (_, error) => assert.strictEqual(stateOf(error), "25P01"))

  it("is absent from the errors of sockets and libraries", () => {
    for (const error of [
      undefined,
      "text",
      new Error("closed"),
      Object.assign(new Error("reset"), { code: "ECONNRESET" })
    ]) {
      assert.isUndefined(stateOf(error))
    }
  })
})
