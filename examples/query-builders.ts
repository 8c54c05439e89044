// Transactions of Kysely and Knex on node:sqlite. Run: node examples/query-builders.ts
import { mkdtempSync, rmSync } from "node:fs"
import { createRequire } from "node:module"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { DatabaseSync, type SQLInputValue } from "node:sqlite"
import { connect, type Message } from "@requeue/core/promise"
import knex from "knex"
import { Kysely, type SqliteDatabase, SqliteDialect } from "kysely"

// Both libraries expect the interface of better-sqlite3, which has a copy of SQLite. This is the same on Node's own copy.
const open = (path: string): SqliteDatabase => {
  const db = new DatabaseSync(path, { timeout: 5000 })
  return {
    prepare: (sql) => {
      const statement = db.prepare(sql)
      // Cast, because Kysely does not know which values SQLite has.
      const known = (values: ReadonlyArray<unknown>) => values as ReadonlyArray<SQLInputValue>
      return {
        reader: statement.columns().length > 0,
        all: (values) => statement.all(...known(values)),
        run: (values) => statement.run(...known(values)),
        iterate: (values) => statement.iterate(...known(values))
      }
    },
    close: () => db.close()
  }
}

// Cast, because Knex has no types for its dialects.
const Dialect = createRequire(import.meta.url)("knex/lib/dialects/better-sqlite3") as typeof knex.Client

const dialect = (path: string): typeof knex.Client =>
  class extends Dialect {
    override initializeDriver() {}
    override async acquireRawConnection() {
      return open(path)
    }
  }

const folder = mkdtempSync(join(tmpdir(), "requeue-"))
const file = join(folder, "app.db")
const requeue = await connect(`sqlite:${file}`, { logger: false })
const inKysely = new Kysely<{ payment: { id: string } }>({ dialect: new SqliteDialect({ database: open(file) }) })
const inKnex = knex({ client: dialect(file), connection: { filename: file }, useNullAsDefault: true })
await inKysely.schema.createTable("payment").addColumn("id", "text").execute()

const ended = Promise.withResolvers<void>()

const first = (message: Message) =>
  inKysely.transaction().execute(async (tx) => {
    await message.within(tx)
    await tx.insertInto("payment").values({ id: "by Kysely" }).execute()
    await requeue.within(tx).send("second", {})
  })

const second = (message: Message) =>
  inKnex.transaction(async (tx) => {
    await message.within(tx)
    await tx("payment").insert({ id: "by Knex" })
    await requeue.within(tx).send("third", {})
  })

await requeue.consume("first", {}, first)
await requeue.consume("second", {}, second)
await requeue.consume("third", {}, async () => {
  for (const { id } of await inKysely.selectFrom("payment").selectAll().execute()) console.log(id)
  ended.resolve()
})
await requeue.send("first", {})
await ended.promise
await requeue.close()
await inKysely.destroy()
await inKnex.destroy()
rmSync(folder, { recursive: true })

// prints:
// by Kysely
// by Knex
