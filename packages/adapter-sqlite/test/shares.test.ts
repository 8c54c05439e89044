/** Shares and their limits below the core: what a claim reads, and when it is repeated. */
import type { DatabaseSync } from "node:sqlite"
import { ShareLimits } from "@requeue/core"
import { type Delivery, Settlement } from "@requeue/core/port"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import { assert, describe, it } from "vitest"
import { roomOf } from "../src/internal/consume/limits.ts"
import { divide } from "../src/internal/consume/shares.ts"
import * as VirtualDriver from "./driver.ts"
import { newPath, openAt, outgoing, probe, run } from "./program.ts"

describe("a limit is divided among shares", () => {
  const divided = (limit: number, waiting: ReadonlyArray<number>, rooms: ReadonlyArray<number>) => {
    const [left, parts] = [[...waiting], waiting.map(() => 0)]
    let calls = 0
    const shares = waiting.map((_, index) => ({ name: String(index), room: rooms[index]! }))
    divide(limit, shares, (name, part) => {
      const [index, count] = [Number(name), Math.min(part, left[Number(name)]!)]
      left[index]! -= count
      parts[index]! += count
      calls++
      return count
    })
    return { parts, calls }
  }

  it("equally, and what a share does not use, the others get", () => {
    const none = Array.from({ length: 4 }, () => Number.POSITIVE_INFINITY)
    assert.deepStrictEqual(divided(10, [100, 100, 100], none).parts, [4, 3, 3])
    assert.deepStrictEqual(divided(10, [100, 1, 100], none).parts, [4, 1, 5])
    assert.deepStrictEqual(divided(10, [100, 1, 1], none).parts, [8, 1, 1])
    assert.deepStrictEqual(divided(10, [100, 1, 100], [2, 9, 3]).parts, [2, 1, 3])
  })

  it("and none is left while a message waits, no share exceeds its room, and the work is bounded", () => {
    const counts = [0, 1, 2, 5]
    const pairs = counts.flatMap((waiting) => [1, 2, 4].map((room) => [waiting, room] as const))
    for (const a of pairs)
      for (const b of pairs)
        for (const c of pairs)
          for (const limit of [1, 2, 3, 5, 8]) {
            const given = [a, b, c]
            const { calls, parts } = divided(
              limit,
              given.map(([waiting]) => waiting),
              given.map(([, room]) => room)
            )
            const most = given.map(([waiting, room]) => Math.min(waiting, room))
            const sum = (numbers: ReadonlyArray<number>) => numbers.reduce((one, other) => one + other, 0)
            assert.strictEqual(sum(parts), Math.min(limit, sum(most)))
            for (const [index, part] of parts.entries()) assert.isAtMost(part, most[index]!)
            assert.isAtMost(calls, limit + given.length)
          }
  })
})

it("a share has room for what its limits leave, and opens when its window does", () => {
  const [concurrency, rateLimit] = [3, { max: 4, per: 1000 }]
  const window = 1000 + ShareLimits.margin
  const delivered = [
    { at: 5000, count: 1 },
    { at: 4500, count: 2 },
    { at: 4000, count: 3 }
  ]
  const rooms = [
    roomOf(ShareLimits.make({ concurrency }), 1, [], 5000),
    roomOf(ShareLimits.make({ concurrency }), 5, [], 5000),
    roomOf(ShareLimits.make({ rateLimit }), 9, delivered, 5000),
    roomOf(ShareLimits.make({ rateLimit }), 9, delivered, 4000 + window),
    roomOf(ShareLimits.make({ rateLimit }), 9, delivered, 4500 + window - 0.5),
    roomOf(ShareLimits.make({ rateLimit }), 9, delivered, 4500 + window),
    roomOf(ShareLimits.make({ concurrency, rateLimit }), 2, delivered, 4500 + window)
  ]
  const never = Number.POSITIVE_INFINITY
  assert.deepStrictEqual(
    rooms.map(({ opens, size }) => [size, opens]),
    [
      [2, never],
      [0, never],
      [0, 4000 + window],
      [1, never],
      [1, never],
      [3, never],
      [1, never]
    ]
  )
})

const hour = 3_600_000

/** A file with a queue, and a record of the statements of the claims. */
const recording = Effect.gen(function* () {
  const [driver, path] = [VirtualDriver.make(), yield* newPath]
  const { broker } = yield* openAt(path, driver, `?lease=${10 * hour}`)
  const db = yield* Effect.acquireRelease(
    Effect.sync(() => driver.open(path)),
    (opened) => Effect.sync(() => opened.close())
  )
  /** Adds messages of another program, with a number `n` for each. */
  const add = (count: number, fairBy: string, at = "0"): void =>
    db.exec(`WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < ${count})
      INSERT INTO requeue_message (queue, at, fair_by, body) SELECT 'q', ${at}, ${fairBy}, x'6e' FROM numbers`)
  /** The statements of each transaction. */
  const transactions: Array<Array<string>> = [[]]
  driver.faults = {
    statement: (sql) => void (/^(PRAGMA|EXPLAIN)/.test(sql) || transactions.at(-1)!.push(sql)),
    commit: () => void transactions.push([])
  }
  return {
    add,
    broker,
    db,
    transactions: (): ReadonlyArray<ReadonlyArray<string>> => transactions.splice(0, transactions.length, [])
  }
})

/** Checks that statements search in indices, and read no more than they return. */
const checkPlans = (db: DatabaseSync, sql: Iterable<string>) => {
  for (const each of new Set(sql)) {
    const plan = db
      .prepare(`EXPLAIN QUERY PLAN ${each}`)
      .all()
      .map(({ detail }) => String(detail))
    for (const step of plan) assert.notMatch(step, /SCAN|TEMP B-TREE|requeue_ready \(queue=\?\)/, each)
  }
}

const fairBys = (inbox: ReadonlyArray<{ readonly fairBy?: string | undefined }>) => inbox.map(({ fairBy }) => fairBy)

describe("a claim", () => {
  it("of a queue with many messages and shares takes from each in turn, without reading more than it leases", () =>
    run(
      Effect.gen(function* () {
        const { add, broker, db, transactions } = yield* recording
        add(100_000, "'big'")
        add(10_000, "'s' || n")
        for (const options of [
          {},
          { shareLimits: ShareLimits.make({ concurrency: 5, rateLimit: { max: 9, per: 1000 } }) }
        ]) {
          transactions()
          const { credit, inbox, settleAll } = yield* probe(broker, 10, "q", options)
          for (let count = 0; count < 30; count++) {
            yield* Effect.sleep(1)
            assert.strictEqual(inbox.length, 10)
            assert.strictEqual(new Set(fairBys(inbox)).size, 10)
            yield* settleAll(Settlement.Ack)
          }
          credit(0)
          const all = transactions()
          for (const each of all) assert.isAtMost(each.length, 110)
          checkPlans(db, all.flat())
        }
      })
    ))

  it("finds what is due among many shares that have only delayed messages, and sleeps until the next is due", () =>
    run(
      Effect.gen(function* () {
        for (const options of [{}, { shareLimits: ShareLimits.make({ concurrency: 1 }) }]) {
          const { add, broker, db, transactions } = yield* recording
          const { inbox } = yield* probe(broker, 10, "q", options)
          yield* Effect.sleep(1)
          const now = yield* Clock.currentTimeMillis
          transactions()
          db.exec("BEGIN")
          add(2000, "'s' || n", String(now + hour))
          add(2, "'z'")
          db.exec("COMMIT")
          yield* Effect.sleep(1)
          const isLimited = "shareLimits" in options
          assert.deepStrictEqual(fairBys(inbox), isLimited ? ["z"] : ["z", "z"])
          const found = transactions()
          for (const each of found) assert.isAtMost(each.length, 120)
          checkPlans(db, found.flat())
          yield* Effect.sleep(hour / 2)
          assert.deepStrictEqual(transactions().flat(), [])
          yield* Effect.sleep(hour)
          assert.strictEqual(inbox.length, 10)
        }
      })
    ))

  it("gets a place that another consumer of the process has freed, at once", () =>
    run(
      Effect.gen(function* () {
        const { broker } = yield* recording
        const options = { shareLimits: ShareLimits.make({ concurrency: 1 }) }
        yield* broker.publish(["a", "b"].map((id) => ({ ...outgoing("q", id), fairBy: "x" })))
        const one = yield* probe(broker, 1, "q", options)
        yield* Effect.sleep(1)
        const other = yield* probe(broker, 1, "q", options)
        yield* Effect.sleep(1)
        assert.deepStrictEqual([one.inbox.length, other.inbox.length], [1, 0])
        one.credit(0)
        yield* one.settleAll(Settlement.Ack)
        yield* Effect.sleep(1)
        assert.deepStrictEqual(fairBys(other.inbox), ["x"])
      })
    ))

  it("waits until a window has room again, and takes what has no limit meanwhile", () =>
    run(
      Effect.gen(function* () {
        const { broker, transactions } = yield* recording
        const rateLimit = { max: 2, per: 1000 }
        const { inbox } = yield* probe(broker, 10, "q", {
          shareLimits: ShareLimits.make({ concurrency: 3, rateLimit })
        })
        const shared = ["a", "b", "c"].map((id) => ({ ...outgoing("q", id), fairBy: "x" }))
        yield* broker.publish([...shared, ...["d", "e", "f"].map((id) => outgoing("q", id))])
        yield* Effect.sleep(1)
        const ids = () => inbox.map(({ metadata }) => metadata.id).toSorted()
        assert.deepStrictEqual(ids(), ["a", "b", "d", "e", "f"])
        transactions()
        yield* Effect.sleep(1000 + ShareLimits.margin - 2)
        assert.deepStrictEqual(transactions().flat(), [])
        yield* Effect.sleep(2)
        assert.deepStrictEqual(ids(), ["a", "b", "c", "d", "e", "f"])
      })
    ))

  it("goes on with all shares when the queue has them no more, and again", () =>
    run(
      Effect.gen(function* () {
        const { broker } = yield* recording
        const { inbox, settleAll } = yield* probe(broker, 1)
        const seen: Array<string | undefined> = []
        for (const fairBy of [undefined, "x", undefined, "y", "x"]) {
          yield* broker.publish([{ ...outgoing("q", String(seen.length)), fairBy }])
          yield* Effect.sleep(1)
          seen.push(...fairBys(inbox))
          yield* settleAll(Settlement.Ack)
        }
        assert.deepStrictEqual(seen, [undefined, "x", undefined, "y", "x"])
      })
    ))
})

it("a browser shows the messages of all shares in the order of their times", () =>
  run(
    Effect.gen(function* () {
      const { add, broker } = yield* recording
      for (const [index, fairBy] of ["'z'", "NULL", "'a'", "NULL", "'z'"].entries()) add(1, fairBy, String(index))
      add(1, "'z'", String(1000 * hour * 24 * 365))
      for (const from of ["ready", "delayed"] as const) {
        const browser = yield* broker.admin.browse({ queue: "q", from, limit: 10 })
        const expected = from === "delayed" ? ["z"] : ["z", undefined, "a", undefined, "z"]
        const shown: Array<Delivery.Delivery> = []
        while (shown.length < expected.length) shown.push(...(yield* browser.next(10)).map(({ delivery }) => delivery))
        assert.deepStrictEqual(fairBys(shown), expected)
      }
    })
  ))
