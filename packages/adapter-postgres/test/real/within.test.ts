/** Transactions of pg: which values are accepted, and that an open transaction delays no other message. */
import { type Broker as Server, start } from "@requeue/brokers"
import { Wait } from "@requeue/conformance"
import { Broker } from "@requeue/core"
import { connect, type Requeue } from "@requeue/core/promise"
import * as Effect from "effect/Effect"
import { Client, Pool } from "pg"
import { afterAll, afterEach, assert, beforeAll, beforeEach, describe, test } from "vitest"
import { adapter, PostgresSchema } from "../../src/index.ts"

let server: Server
let requeue: Requeue
let client: Client
let schema: string
let schemas = 0

const open = (options: object = {}): Promise<Requeue> =>
  connect({ url: server.url, schema, ...options }, { adapters: [adapter], logger: false })

beforeAll(async () => {
  server = await start("postgres", { parameters: { fsync: "off" } })
})

afterAll(() => server.dispose())

beforeEach(async () => {
  schema = `within_${++schemas}`
  requeue = await open()
  client = new Client(server.url)
  await client.connect()
})

afterEach(async () => {
  await client.end()
  await requeue.close()
})

const until = (what: string, holds: () => boolean | Promise<boolean>): Promise<void> =>
  Effect.runPromise(Wait.until(what, async () => holds()))

const ready = async (queue: string): Promise<number | undefined> => (await requeue.counts(queue)).ready

/** The message of the error of a send in a transaction. */
const refusal = async (value: unknown): Promise<string> => {
  // A value that is no transaction is refused before there is a promise.
  const send = async () => requeue.within(value).send("orders", 1)
  const error: unknown = await send().catch((cause: unknown) => cause)
  assert.instanceOf(error, Error)
  return error.message
}

describe("a value that is not an open transaction is refused", () => {
  test("a connection without BEGIN", async () => {
    assert.match(await refusal(client), /Unsupported: no transaction is open/)
    assert.strictEqual(await ready("orders"), 0)
  })

  test("a transaction that has ended", async () => {
    await client.query("BEGIN")
    await requeue.within(client).send("orders", 1)
    await client.query("COMMIT")
    assert.match(await refusal(client), /no transaction is open/)
    assert.strictEqual(await ready("orders"), 1)
  })

  test("a transaction that has failed", async () => {
    await client.query("BEGIN")
    await client.query("SELECT 1/0").catch(() => undefined)
    assert.match(await refusal(client), /can only be rolled back/)
    await client.query("ROLLBACK")
  })

  test("a pool", async () => {
    const pool = new Pool({ connectionString: server.url })
    assert.match(await refusal(pool), /expected a transaction of pg, postgres\.js/)
    await pool.end()
  })

  test("something else", async () => assert.match(await refusal({ query: "no" }), /expected a transaction of pg/))

  test("a transaction of another database, also of one with the same tables", async () => {
    await client.query(`CREATE DATABASE other_${schema}`)
    const url = new URL(server.url)
    url.pathname = `/other_${schema}`
    const other = new Client(url.href)
    await other.connect()
    await other.query("BEGIN")
    assert.match(await refusal(other), /in another database/)
    await other.query("ROLLBACK")
    await other.query(PostgresSchema.sql(schema))
    await other.query("BEGIN")
    assert.match(await refusal(other), /in another database/)
    await other.query("ROLLBACK")
    await other.end()
  })
})

describe("the inbox", () => {
  const record = async (on: Client, ...ids: ReadonlyArray<string>) =>
    requeue.run(Effect.flatMap(Broker.Broker, ({ inbox }) => inbox!.record(on, "orders", ids)))

  test("forgets what is older, oldest first, and keeps the rest", async () => {
    await client.query("BEGIN")
    await record(client, "a", "b", "c", "d")
    await client.query(`UPDATE ${schema}.inbox SET at = at - 10000 * position(id IN 'dcba')`)
    await client.query("COMMIT")
    const prune = (age: number, limit: number) =>
      requeue.run(Effect.flatMap(Broker.Broker, ({ inbox }) => inbox!.prune(age, limit)))
    const left = async () => {
      const { rows } = await client.query<{ id: string }>(`SELECT id FROM ${schema}.inbox ORDER BY id`)
      return rows.map(({ id }) => id).join("")
    }
    assert.deepStrictEqual([await prune(3_600_000, 10), await left()], [0, "abcd"])
    assert.deepStrictEqual([await prune(5000, 2), await left()], [2, "cd"])
    assert.deepStrictEqual([await prune(15_000, 10), await left()], [1, "d"])
  })

  test("waits for another transaction that records the message, and then knows whether that was committed", async () => {
    const other = new Client(server.url)
    await other.connect()
    for (const end of ["ROLLBACK", "COMMIT"]) {
      await client.query("BEGIN")
      await other.query("BEGIN")
      assert.deepStrictEqual(await record(other, "a"), [])
      let answer: ReadonlyArray<string> | undefined
      const recording = record(client, "b", "a").then((ids) => (answer = ids))
      await until("a wait", async () => {
        const { rows } = await other.query("SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock'")
        return rows.length === 1
      })
      assert.strictEqual(answer, undefined)
      await other.query(end)
      assert.deepStrictEqual(await recording, end === "COMMIT" ? ["a"] : [])
      await client.query("ROLLBACK")
    }
    await other.end()
  })
})

describe("an open transaction", () => {
  test("of a handler that does not await it delays its own message only", async () => {
    const seen: Array<unknown> = []
    await requeue.consume("orders", { concurrency: 10, retry: { maxRetries: 3 } }, async (message) => {
      seen.push(`${message.body} ${message.attempts}`)
      if (message.body !== "held" || message.attempts > 1) return
      await client.query("BEGIN")
      await message.within(client)
    })
    await requeue.send("orders", "held")
    await until("the first run", () => seen.includes("held 1"))
    for (let i = 0; i < 20; i++) await requeue.send("orders", i)
    await until("the others", () => seen.length >= 21)
    await until("one message left", async () => {
      const { inFlight, ready: waiting } = await requeue.counts("orders")
      return waiting === 0 && inFlight === 1
    })
    await client.query("ROLLBACK")
    await until("the second run", () => seen.includes("held 2"))
    await until("an empty queue", async () => (await requeue.counts("orders")).inFlight === 0)
  })

  test("that creates a queue does not hold up other sends to it", async () => {
    await client.query("BEGIN")
    await requeue.within(client).send("new", 1)
    await requeue.send("new", 2)
    assert.strictEqual(await ready("new"), 1)
    await client.query("ROLLBACK")
    assert.strictEqual(await ready("new"), 1)
  })

  // With notifications, the commit wakes the consumer; without them, it scans from the start of the queue every second.
  test.each([true, false])(
    "that commits after later messages were consumed is delivered, notify: %s",
    async (notify) => {
      const own = await open({ notify })
      const seen: Array<unknown> = []
      await own.consume("orders", {}, ({ body }) => void seen.push(body))
      await client.query("BEGIN")
      await own.within(client).send("orders", "early")
      for (let i = 0; i < 5; i++) await own.send("orders", i)
      await until("the others", () => seen.length === 5)
      await client.query("COMMIT")
      await until("the early one", () => seen.includes("early"))
      await own.close()
    }
  )
})
