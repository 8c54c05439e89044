/**
 * A handler's row, its message and its ack in one transaction of each library on `node:sqlite`: all of them after a commit, none
 * after a rollback. Libraries with a copy of SQLite are refused.
 */
import * as fs from "node:fs"
import { createRequire } from "node:module"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { DatabaseSync, type SQLInputValue } from "node:sqlite"
import BetterSqlite from "better-sqlite3"
import { drizzle } from "drizzle-orm/node-sqlite"
import { sqliteTable, text } from "drizzle-orm/sqlite-core"
import { BrokerError, connect, type Event, type Requeue } from "@requeue/core/promise"
import knex from "knex"
import { CamelCasePlugin, Kysely, type SqliteDatabase, SqliteDialect } from "kysely"
import { assert, describe, it } from "vitest"
import { adapter } from "../../src/index.ts"

/** What a handler does in a transaction. A synchronous library does not wait for the results. */
type Steps = (transaction: unknown, write: (row: string) => unknown) => ReadonlyArray<() => unknown>

interface Library {
  readonly transaction: (steps: Steps) => unknown
  readonly close: () => unknown
}

/** A connection of `node:sqlite` in the shape that Kysely and Knex expect. */
const shaped = (path: string): SqliteDatabase => {
  const db = new DatabaseSync(path, { timeout: 5000 })
  return {
    prepare: (sql) => {
      const statement = db.prepare(sql)
      // Cast, because both libraries pass only values that SQLite has.
      const all = (values: unknown) => values as ReadonlyArray<SQLInputValue>
      return {
        reader: statement.columns().length > 0,
        all: (values) => statement.all(...all(values)),
        run: (values) => statement.run(...all(values)),
        iterate: (values) => statement.iterate(...all(values))
      }
    },
    close: () => db.close()
  }
}

// Cast, because Knex has no types for its dialects.
const BetterSqliteDialect = createRequire(import.meta.url)("knex/lib/dialects/better-sqlite3") as typeof knex.Client

/** A dialect of Knex on `node:sqlite`. */
const dialectOf = (path: string): typeof knex.Client =>
  class extends BetterSqliteDialect {
    override initializeDriver() {}
    override async acquireRawConnection() {
      return shaped(path)
    }
  }

const kyselyOn = (database: SqliteDatabase): Library => {
  const db = new Kysely<{ mine: { row: string } }>({
    dialect: new SqliteDialect({ database }),
    plugins: [new CamelCasePlugin()]
  })
  return {
    transaction: (steps) =>
      db.transaction().execute((tx) => inOrder(steps(tx, (row) => tx.insertInto("mine").values({ row }).execute()))),
    close: () => db.destroy()
  }
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
  Drizzle: (path) => {
    const db = drizzle({ connection: { path, timeout: 5000 } })
    const mine = sqliteTable("mine", { row: text() })
    return {
      transaction: (steps) =>
        db.transaction((tx) => synchronously(steps(tx, (row) => tx.insert(mine).values({ row }).run()))),
      close: () => db.$client.close()
    }
  },
  Kysely: (path) => kyselyOn(shaped(path)),
  Knex: (path) => {
    const db = knex({ client: dialectOf(path), connection: { filename: path }, useNullAsDefault: true })
    return {
      transaction: (steps) => db.transaction((tx) => inOrder(steps(tx, async (row) => tx("mine").insert({ row })))),
      close: () => db.destroy()
    }
  }
}

const ofOtherCopies: Readonly<Record<string, (path: string) => Library>> = {
  "better-sqlite3": (path) => {
    const db = new BetterSqlite(path)
    return {
      transaction: (steps) => db.transaction(() => synchronously(steps(db, (row) => db.prepare(insert).run(row))))(),
      close: () => db.close()
    }
  },
  "Kysely on better-sqlite3": (path) => kyselyOn(new BetterSqlite(path))
}

/** The rows of the table, and the messages of each queue. */
const read = (path: string) => {
  const db = new DatabaseSync(path)
  const mine = db.prepare("SELECT row FROM mine").all()
  const queues = db.prepare("SELECT queue, count(*) AS n FROM requeue_message GROUP BY queue").all()
  db.close()
  return { rows: mine.map(({ row }) => row), queues: Object.fromEntries(queues.map(({ n, queue }) => [queue, n])) }
}

/** Opens a queue and a library on one new file, runs a test, and closes them. */
const onFile = async (
  open: (path: string) => Library,
  test: (requeue: Requeue, library: Library, path: string) => Promise<void>
): Promise<void> => {
  const folder = fs.mkdtempSync(join(tmpdir(), "requeue-sqlite-"))
  const path = join(folder, "queue.db")
  const requeue = await connect(`sqlite:${path}`, { adapters: [adapter], logger: false })
  const setUp = new DatabaseSync(path)
  setUp.exec("CREATE TABLE mine (row TEXT)")
  setUp.close()
  const library = open(path)
  try {
    await test(requeue, library, path)
  } finally {
    await library.close()
    await requeue.close()
    fs.rmSync(folder, { recursive: true })
  }
}

describe("a transaction has a row, a message and the ack", () => {
  it.each(Object.entries(libraries))("%s", { timeout: 120_000 }, (_, open) =>
    onFile(open, async (requeue, library, path) => {
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
    })
  )
})

describe("a transaction of another copy of SQLite is refused, and gets no message", () => {
  it.each(Object.entries(ofOtherCopies))("%s", (_, open) =>
    onFile(open, async (requeue, library, path) => {
      const errors: Array<unknown> = []
      await library.transaction((transaction, write) => [
        () => write("p1"),
        async () => {
          try {
            await requeue.within(transaction).send("receipts", {})
          } catch (error) {
            errors.push(error)
          }
        }
      ])
      const [error] = errors
      assert.instanceOf(error, BrokerError)
      assert.match(error.message, /Unsupported: .* of another copy of SQLite.* Open the file only with node:sqlite/)
      assert.deepStrictEqual(read(path), { rows: ["p1"], queues: {} })
    })
  )
})
