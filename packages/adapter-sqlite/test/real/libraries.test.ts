/** A handler's row, its message and its ack in one transaction of each library: all of them after a commit, none after a rollback. */
import * as fs from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { DatabaseSync } from "node:sqlite"
import BetterSqlite from "better-sqlite3"
import { drizzle } from "drizzle-orm/better-sqlite3"
import { sqliteTable, text } from "drizzle-orm/sqlite-core"
import { BrokerError, connect, type Event } from "@requeue/core/promise"
import knex from "knex"
import { CamelCasePlugin, Kysely, SqliteDialect } from "kysely"
import { assert, describe, it } from "vitest"
import { adapter } from "../../src/index.ts"

/** What a handler does in a transaction. A synchronous library does not wait for the results. */
type Steps = (transaction: unknown, write: (row: string) => unknown) => ReadonlyArray<() => unknown>

interface Library {
  readonly transaction: (steps: Steps) => unknown
  readonly close: () => unknown
}

const insert = "INSERT INTO mine VALUES (?)"

const synchronously = (steps: ReadonlyArray<() => unknown>): void => {
  for (const step of steps) void step()
}

const inOrder = async (steps: ReadonlyArray<() => unknown>): Promise<void> => {
  for (const step of steps) await step()
}

const libraries: Readonly<Record<string, (path: string) => Library>> = {
  "node:sqlite": (path) => {
    const db = new DatabaseSync(path, { timeout: 5000 })
    return {
      transaction: (steps) => {
        db.exec("BEGIN IMMEDIATE")
        try {
          synchronously(steps(db, (row) => db.prepare(insert).run(row)))
          db.exec("COMMIT")
        } catch (error) {
          db.exec("ROLLBACK")
          throw error
        }
      },
      close: () => db.close()
    }
  },
  "better-sqlite3": (path) => {
    const db = new BetterSqlite(path)
    return {
      transaction: (steps) =>
        db.transaction(() => synchronously(steps(db, (row) => db.prepare(insert).run(row)))).immediate(),
      close: () => db.close()
    }
  },
  "Drizzle on better-sqlite3": (path) => {
    const db = drizzle(path)
    const mine = sqliteTable("mine", { row: text() })
    return {
      transaction: (steps) =>
        db.transaction((tx) => synchronously(steps(tx, (row) => tx.insert(mine).values({ row }).run()))),
      close: () => db.$client.close()
    }
  },
  Kysely: (path) => {
    const db = new Kysely<{ mine: { row: string } }>({
      dialect: new SqliteDialect({ database: new BetterSqlite(path) }),
      plugins: [new CamelCasePlugin()]
    })
    return {
      transaction: (steps) =>
        db.transaction().execute((tx) => inOrder(steps(tx, (row) => tx.insertInto("mine").values({ row }).execute()))),
      close: () => db.destroy()
    }
  },
  Knex: (path) => {
    const db = knex({ client: "better-sqlite3", connection: { filename: path }, useNullAsDefault: true })
    return {
      transaction: (steps) => db.transaction((tx) => inOrder(steps(tx, async (row) => tx("mine").insert({ row })))),
      close: () => db.destroy()
    }
  }
}

/** The rows of the table, and the messages of each queue. */
const read = (path: string) => {
  const db = new DatabaseSync(path)
  const mine = db.prepare("SELECT row FROM mine").all()
  const queues = db.prepare("SELECT queue, count(*) AS n FROM requeue_message GROUP BY queue").all()
  db.close()
  return { rows: mine.map(({ row }) => row), queues: Object.fromEntries(queues.map(({ n, queue }) => [queue, n])) }
}

describe("a transaction has a row, a message and the ack", () => {
  it.each(Object.entries(libraries))("%s", { timeout: 120_000 }, async (_, open) => {
    const folder = fs.mkdtempSync(join(tmpdir(), "requeue-sqlite-"))
    const path = join(folder, "queue.db")
    const requeue = await connect(`sqlite:${path}`, { adapters: [adapter], logger: false })
    const setUp = new DatabaseSync(path)
    setUp.exec("CREATE TABLE mine (row TEXT)")
    setUp.close()
    const library = open(path)
    try {
      const ended = Promise.withResolvers<void>()
      const events: Array<Event["_tag"]> = []
      const before: Array<unknown> = []
      const onEvent = ({ _tag }: Event): void => {
        events.push(_tag)
        if (_tag === "Succeeded") ended.resolve()
      }
      let last: unknown
      await requeue.consume("payments", { retry: { maxRetries: 1 }, onEvent }, (message) =>
        library.transaction((transaction, write) => [
          () => {
            last = transaction
          },
          () => message.within(transaction),
          () => write(message.id),
          () => requeue.within(transaction).send("receipts", { of: message.id }),
          () => before.push(read(path)),
          () => {
            if (message.attempts === 1) throw new Error("rolls back")
          }
        ])
      )
      await requeue.send("payments", { amount: 5 }, { id: "p1" })
      await ended.promise
      const late = await (async () => requeue.within(last).send("receipts", {}))().catch((error: unknown) => error)
      assert.instanceOf(late, BrokerError)
      assert.match(late.message, /Unsupported: no transaction is open\. Begin it before/)
      await requeue.close()
      const inFlight = { rows: [], queues: { payments: 1 } }
      assert.deepStrictEqual(before, [inFlight, inFlight])
      assert.deepStrictEqual(read(path), { rows: ["p1"], queues: { receipts: 1 } })
      assert.deepStrictEqual(events, ["Received", "AttemptFailed", "RetryScheduled", "Received", "Succeeded"])
    } finally {
      await library.close()
      await requeue.close()
      fs.rmSync(folder, { recursive: true })
    }
  })
})
