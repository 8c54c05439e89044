/** Messages with `fairBy`: the cost of a claim, limits over two connections, and locks of others. */
import { Client } from "pg"
import { assert, describe, test } from "vitest"
import { client, here, open, schema, server, there, until } from "./twoConnections.ts"

open("shares")

const insert = (columns: string, rows: string) =>
  client.query(`INSERT INTO ${schema}.message (queue, body, ${columns}) SELECT 'orders', '1', ${rows}`)

interface Turn {
  readonly seq: string | null
  readonly fair_by: string | null
  readonly last: string | null
  readonly is_whole: boolean | null
}

/** Claims messages without limits, and returns the shares of them, and what the last row says. */
const turn = async (last: string, size: number) => {
  const { rows } = await client.query<Turn>(
    `SELECT * FROM ${schema}.turn('orders', $1, $1, $2, 60000, NULL, NULL, NULL)`,
    [last, size]
  )
  const { is_whole, last: next } = rows.at(-1)!
  return { shares: rows.slice(0, -1).map(({ fair_by }) => fair_by), isWhole: is_whole, next: next! }
}

/** How many pages a claim reads. It keeps what it claims. */
const pagesOf = async (last: string, size: number, limits = "NULL, NULL, NULL"): Promise<number> => {
  const call = `${schema}.turn('orders', '${last}', '${last}', ${size}, 60000, ${limits})`
  const { rows } = await client.query<{ "QUERY PLAN": ReadonlyArray<{ readonly Plan: Record<string, number> }> }>(
    `EXPLAIN (ANALYZE, BUFFERS, FORMAT json) SELECT * FROM ${call}`
  )
  const { Plan } = rows[0]!["QUERY PLAN"][0]!
  return Plan["Shared Hit Blocks"]! + Plan["Shared Read Blocks"]!
}

describe("the cost of a claim", () => {
  const name = "'t' || lpad(n::text, 5, '0')"

  test("does not depend on the number of messages or shares", async () => {
    await insert("fair_by", "'big' FROM generate_series(1, 20) n")
    await insert("fair_by", `${name} FROM generate_series(1, 20) n`)
    // A session caches what it has read of the catalog.
    await pagesOf("", 5, "2, 10, 60000")
    const few = { free: await pagesOf("", 5), limited: await pagesOf("", 5, "2, 10, 60000") }
    await client.query(`TRUNCATE ${schema}.message, ${schema}.delivery`)
    await insert("fair_by", "'big' FROM generate_series(1, 100000) n")
    await insert("fair_by", `${name} FROM generate_series(1, 10000) n`)
    await client.query(`ANALYZE ${schema}.message`)
    await pagesOf("", 5, "2, 10, 60000")
    const many = { free: await pagesOf("", 5), limited: await pagesOf("", 5, "2, 10, 60000") }
    // The indices have two levels more.
    assert.isBelow(many.free, 4 * few.free)
    assert.isBelow(many.limited, 4 * few.limited)
  })

  test("is bounded when most shares have only delayed messages, and it finds a due one", async () => {
    const later = 8_000_000_000_000
    await insert("fair_by, at", `${name}, ${later} FROM generate_series(1, 10000) n`)
    await insert("fair_by", "'t05000' FROM generate_series(1, 3) n")
    // Fewer than 100 messages are due: it has found all of their shares.
    assert.deepStrictEqual(await turn("", 2), { shares: ["t05000", "t05000"], isWhole: true, next: "t00100" })
    assert.deepStrictEqual(await turn("t00100", 2), { shares: ["t05000"], isWhole: true, next: "t00200" })
    assert.deepStrictEqual(await turn("t00200", 2), { shares: [], isWhole: true, next: "t00300" })
    await insert("fair_by", "'t05000' FROM generate_series(1, 1000) n")
    assert.deepStrictEqual(await turn("t00300", 2), { shares: ["t05000", "t05000"], isWhole: false, next: "t00400" })
    assert.isBelow(await pagesOf("t00300", 2), 100 * 10)
  })
})

test("a claim divides its limit among the shares, and begins with another each time", async () => {
  await insert("fair_by", "'a' FROM generate_series(1, 100) n")
  await insert("fair_by", "'b' FROM generate_series(1, 2) n")
  await insert("fair_by", "NULL FROM generate_series(1, 100) n")
  const counts = async (last: string, size: number) => {
    const { next, shares } = await turn(last, size)
    return [next, ...["a", "b", null].map((share) => shares.filter((each) => each === share).length)]
  }
  assert.deepStrictEqual(await counts("", 4), ["a", 2, 1, 1])
  assert.deepStrictEqual(await counts("a", 4), ["b", 1, 1, 2])
  assert.deepStrictEqual(await counts("b", 4), ["", 2, 0, 2])
  assert.deepStrictEqual(await counts("a", 1), ["", 0, 0, 1])
  assert.deepStrictEqual(await counts("", 1), ["a", 1, 0, 0])
})

test("600 messages of 12 shares on two connections: no share exceeds its limit, and all are handled", async () => {
  const [shares, each, concurrency] = [12, 50, 3]
  for (let n = 0; n < each; n++) {
    await here.sendBatch(
      "orders",
      Array.from({ length: shares }, (_, share) => ({ body: n, fairBy: `s${share}` }))
    )
  }
  const running = new Map<string, number>()
  const excesses: Array<string> = []
  let handled = 0
  for (const requeue of [here, there]) {
    await requeue.consume("orders", { concurrency: 30, shareLimits: { concurrency } }, async ({ fairBy = "" }) => {
      const count = (running.get(fairBy) ?? 0) + 1
      if (count > concurrency) excesses.push(`${fairBy}: ${count}`)
      running.set(fairBy, count)
      await new Promise(setImmediate)
      running.set(fairBy, running.get(fairBy)! - 1)
      handled++
    })
  }
  await until("all", () => handled === shares * each)
  assert.deepStrictEqual(excesses, [])
})

test("a share whose lock another claim has is skipped, and follows when that has ended", async () => {
  await client.query("BEGIN")
  await client.query("SELECT pg_advisory_xact_lock(hashtextextended('orders' || E'\\x02' || 'a', 0))")
  const seen: Array<unknown> = []
  await here.consume("orders", { concurrency: 10, shareLimits: { concurrency: 1 } }, ({ body }) => void seen.push(body))
  await here.send("orders", "a0", { fairBy: "a" })
  await here.send("orders", "b0", { fairBy: "b" })
  await until("the other share", () => seen.length === 1)
  assert.deepStrictEqual(seen, ["b0"])
  await client.query("COMMIT")
  await until("both", () => seen.length === 2)
})

test("a key that waits for a program's transaction does not hold up its share", async () => {
  const seen: Array<unknown> = []
  const other = new Client(server.url)
  await other.connect()
  const acked = Promise.withResolvers<void>()
  await here.consume("orders", { concurrency: 2, prefetch: 0 }, async (message) => {
    seen.push(message.body)
    if (message.body !== "k0") return
    await other.query("BEGIN")
    await message.within(other)
    // These are free, but the other transaction has the lock of their key.
    await client.query("BEGIN")
    for (const body of ["k1", "k2"]) await here.within(client).send("orders", body, { key: "k", fairBy: "a" })
    await client.query("COMMIT")
    acked.resolve()
  })
  await here.send("orders", "k0", { key: "k", fairBy: "a" })
  await acked.promise
  await there.send("orders", "a0", { fairBy: "a" })
  await until("the other", () => seen.length === 2)
  assert.deepStrictEqual(seen, ["k0", "a0"])
  await other.query("COMMIT")
  await other.end()
  await until("all", () => seen.length === 4)
  assert.deepStrictEqual(seen, ["k0", "a0", "k1", "k2"])
})

test("what was delivered is forgotten when its window has ended", async () => {
  const ends: Array<number> = []
  const shareLimits = { rateLimit: { max: 5, per: 100 } }
  await here.consume("orders", { concurrency: 10, shareLimits }, () => void ends.push(0))
  await here.sendBatch(
    "orders",
    Array.from({ length: 40 }, (_, n) => ({ body: n, fairBy: `s${n % 2}` }))
  )
  await until("all", () => ends.length === 40)
  const { rows } = await client.query<{ sum: number }>(`SELECT sum(messages)::int FROM ${schema}.delivery`)
  assert.isBelow(rows[0]!.sum, 40)
})
