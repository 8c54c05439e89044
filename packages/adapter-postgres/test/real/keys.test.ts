/** Messages with a key: races of two processes, transactions of programs, and rows of other programs. */
import { Client } from "pg"
import { assert, describe, test } from "vitest"
import { client, here, open, schema, server, there, until } from "./twoConnections.ts"

open("keys")

const counts = () => here.counts("orders")

const isEmpty = async (): Promise<boolean> => {
  const { delayed, inFlight, ready } = await counts()
  return ready === 0 && inFlight === 0 && delayed === 0
}

/** Consumes on two connections, and returns the bodies of each key as they were handled. Fails if a key has two handlers at once. */
const consumeTwice = async (concurrency: number) => {
  const seen: Record<string, Array<unknown>> = {}
  const running = new Set<string>()
  const overlaps: Array<string> = []
  let handled = (): void => undefined
  for (const requeue of [here, there]) {
    await requeue.consume("orders", { concurrency }, async ({ body, key = "" }) => {
      if (running.has(key)) overlaps.push(`${key}: ${String(body)}`)
      running.add(key)
      await new Promise(setImmediate)
      ;(seen[key] ??= []).push(body)
      running.delete(key)
      handled()
    })
  }
  /** Resolves after the next message. */
  const next = () => new Promise<void>((resolve) => (handled = resolve))
  return { seen, overlaps, next }
}

/** How often a removed message could not free the next one. */
const vacancies = async (): Promise<unknown> => {
  const { rows } = await client.query(`SELECT is_called FROM ${schema}.vacancy_id_seq`)
  return rows[0]?.is_called
}

describe("races", () => {
  test("500 sends while the last message of their key is acked: none is blocked forever", async () => {
    const { next, overlaps, seen } = await consumeTwice(1)
    for (let n = 0; n < 500; n++) {
      const isHandled = next()
      await (n % 2 === 0 ? here : there).send("orders", n, { key: "a" })
      // Half of the sends begin when the message before is being acked, the others while it is being handled or waits.
      if (n % 2 === 0) await isHandled
    }
    await until("all", () => seen["a"]!.length === 500)
    assert.deepStrictEqual(
      seen["a"],
      Array.from({ length: 500 }, (_, n) => n)
    )
    assert.deepStrictEqual(overlaps, [])
    assert.strictEqual(await vacancies(), false)
  })

  /** Acks `a0` while another transaction is about to block `a1`, and expects that `a1` is handled. */
  const blockMeanwhile = async (block: () => Promise<unknown>) => {
    const seen: Array<unknown> = []
    const end = Promise.withResolvers<void>()
    await here.consume("orders", { concurrency: 10 }, async ({ body }) => {
      seen.push(body)
      if (body === "a0") await end.promise
    })
    await here.send("orders", "a0", { key: "a" })
    await until("the first", () => seen.length === 1)
    await client.query("BEGIN")
    await block()
    end.resolve()
    const observer = new Client(server.url)
    await observer.connect()
    await until("the ack, or its wait", async () => {
      const { rowCount } = await observer.query(
        `SELECT FROM pg_locks WHERE NOT granted AND locktype = 'advisory'
         UNION ALL SELECT WHERE NOT EXISTS (SELECT FROM ${schema}.message WHERE leased > 0)`
      )
      return rowCount === 1
    })
    await observer.end()
    await client.query("COMMIT")
    await until("the second", () => seen.length === 2)
    assert.deepStrictEqual(seen, ["a0", "a1"])
    await until("an empty queue", isEmpty)
  }

  const row = `'orders', 'orders', 'a', '"a1"'`

  test("of an ack with a send that will be blocked", () =>
    blockMeanwhile(() =>
      client.query(`INSERT INTO ${schema}.message (queue, lane, key, body, leased) VALUES (${row}, -1)`)
    ))

  test("of an ack with a claim that blocks", () =>
    blockMeanwhile(() =>
      client.query(
        `WITH sent AS (INSERT INTO ${schema}.message (queue, lane, key, body) VALUES (${row}) RETURNING seq)
         SELECT ${schema}.admit(ARRAY[seq]) FROM sent`
      )
    ))

  test("of claims for messages that transactions have sent: each key has one handler at a time, in order", async () => {
    const keys = ["a", "b", "c"]
    await client.query("BEGIN")
    for (let n = 0; n < 100; n++) for (const key of keys) await here.within(client).send("orders", n, { key })
    const { overlaps, seen } = await consumeTwice(10)
    await client.query("COMMIT")
    await until("all", () => keys.every((key) => seen[key]?.length === 100))
    for (const key of keys) {
      assert.deepStrictEqual(
        seen[key],
        Array.from({ length: 100 }, (_, n) => n)
      )
    }
    assert.deepStrictEqual(overlaps, [])
    await until("an empty queue", isEmpty)
  })

  test("of a message with an earlier one whose transaction commits late: the key has one handler at a time", async () => {
    const seen: Array<unknown> = []
    const end = Promise.withResolvers<void>()
    await here.consume("orders", { concurrency: 10 }, async ({ body }) => {
      seen.push(body)
      if (body === "late") await end.promise
    })
    await client.query("BEGIN")
    await here.within(client).send("orders", "early", { key: "a" })
    await there.send("orders", "late", { key: "a" })
    await until("the late one", () => seen.length === 1)
    await client.query("COMMIT")
    await there.send("orders", "other")
    await until("the other key", () => seen.length === 2)
    end.resolve()
    await until("all", () => seen.length === 3)
    assert.deepStrictEqual(seen, ["late", "other", "early"])
    await until("an empty queue", isEmpty)
  })
})

describe("a transaction that acks a message", () => {
  /** Handles messages; the first one in a transaction. Returns the bodies, in order. */
  const consumeWithin = async (begin: string, end: string, meanwhile: () => Promise<unknown>) => {
    const seen: Array<string> = []
    await here.consume("orders", { concurrency: 10, retry: { maxRetries: 1 } }, async (message) => {
      seen.push(`${message.body} ${message.attempts}`)
      if (message.body !== "a0" || message.attempts > 1) return
      await client.query(begin)
      // The transaction's snapshot, if it has one.
      await client.query("SELECT 1 FROM pg_class LIMIT 1")
      await meanwhile()
      await message.within(client)
      await client.query(end)
      if (end === "ROLLBACK") throw new Error("no")
    })
    return seen
  }

  test.each(["READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"])("makes way for the next, %s", async (level) => {
    const seen = await consumeWithin(`BEGIN ISOLATION LEVEL ${level}`, "COMMIT", () =>
      there.send("orders", "a1", { key: "a" })
    )
    await here.send("orders", "a0", { key: "a" })
    await until("both", () => seen.length === 2)
    assert.deepStrictEqual(seen, ["a0 1", "a1 1"])
    await until("an empty queue", isEmpty)
  })

  test("and rolls back keeps its place", async () => {
    const seen = await consumeWithin("BEGIN", "ROLLBACK", () => there.send("orders", "a1", { key: "a" }))
    await here.send("orders", "a0", { key: "a" })
    await until("three", () => seen.length === 3)
    assert.deepStrictEqual(seen, ["a0 1", "a0 2", "a1 1"])
    await until("an empty queue", isEmpty)
  })

  test("and stays open holds up its key only", async () => {
    const seen: Array<unknown> = []
    await here.consume("orders", { concurrency: 10 }, async (message) => {
      seen.push(message.body)
      if (message.body !== "a0") return
      await client.query("BEGIN")
      await message.within(client)
    })
    await here.send("orders", "a0", { key: "a" })
    await until("the first", () => seen.length === 1)
    await there.send("orders", "a1", { key: "a" })
    for (let n = 0; n < 20; n++) {
      await there.send("orders", `b${n}`, { key: "b" })
      await there.send("orders", n)
    }
    await until("the others", () => seen.length >= 41)
    assert.notInclude(seen, "a1")
    await client.query("COMMIT")
    await until("the next", () => seen.includes("a1"))
    await until("an empty queue", isEmpty)
  })
})

test("rows of other programs need only a key to be in order", async () => {
  const insert = `INSERT INTO ${schema}.message (queue, key, body) VALUES`
  await client.query(
    `${insert} ('orders', 'a', '0'), ('orders', 'a', '1'), ('orders', NULL, '2'), ('orders', 'b', '3')`
  )
  const { overlaps, seen } = await consumeTwice(10)
  await until("all", async () => Object.values(seen).flat().length === 4)
  assert.deepStrictEqual([seen["a"], seen["b"], seen[""]], [[0, 1], [3], [2]])
  assert.deepStrictEqual(overlaps, [])
})

test("a claim blocks all later messages of a key that a program wrote, so they do not hold up other keys", async () => {
  await client.query(
    `INSERT INTO ${schema}.message (queue, key, body) SELECT 'orders', 'a', convert_to(n::text, 'UTF8') FROM generate_series(0, 2999) n`
  )
  const { rows } = await client.query(
    `SELECT ${schema}.admit(ARRAY(SELECT seq FROM ${schema}.message ORDER BY seq DESC LIMIT 10))`
  )
  assert.deepStrictEqual(rows, [])
  const { blocked, ready } = await counts()
  assert.deepStrictEqual({ blocked, ready }, { blocked: 2999, ready: 1 })
  const { seen } = await consumeTwice(1)
  await until("the first ones", () => (seen["a"]?.length ?? 0) > 10)
  assert.deepStrictEqual(seen["a"]?.slice(0, 10), [0, 1, 2, 3, 4, 5, 6, 7, 8, 9])
})

test("many keys are counted, and a purge that any program made holds up none", async () => {
  const entries = Array.from({ length: 30 }, (_, n) => ({ body: n, key: `k${n % 10}` }))
  await here.sendBatch("orders", entries)
  assert.deepStrictEqual(await counts(), { ready: 10, inFlight: 0, delayed: 0, blocked: 20 })
  await client.query(
    `DELETE FROM ${schema}.message WHERE seq IN (SELECT seq FROM ${schema}.message ORDER BY seq LIMIT 15)`
  )
  assert.deepStrictEqual(await counts(), { ready: 10, inFlight: 0, delayed: 0, blocked: 5 })
})
