// A row, a message and the ack in one transaction of a SQLite file. Run: node examples/transactions.ts
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { DatabaseSync } from "node:sqlite"
import { connect } from "@requeue/core/promise"

const folder = mkdtempSync(join(tmpdir(), "requeue-"))
const file = join(folder, "app.db")
const requeue = await connect(`sqlite:${file}`, { logger: false })
const ended = Promise.withResolvers<void>()

// Your own connection and table. The timeout is for other processes that write meanwhile.
const db = new DatabaseSync(file, { timeout: 5000 })
db.exec("CREATE TABLE payment (id TEXT PRIMARY KEY)")
const rows = () => db.prepare("SELECT id FROM payment").all().length

// Drizzle, Kysely and Knex have such a function.
const transaction = (body: () => void): void => {
  db.exec("BEGIN IMMEDIATE")
  try {
    body()
    db.exec("COMMIT")
  } catch (error) {
    if (db.isTransaction) db.exec("ROLLBACK")
    throw error
  }
}

await requeue.consume("payments", { retry: { maxRetries: 1 } }, (message) => {
  console.log(`attempt ${message.attempts}, ${rows()} rows`)
  transaction(() => {
    void message.within(db)
    db.prepare("INSERT INTO payment VALUES (?)").run(message.id)
    void requeue.within(db).send("receipts", { of: message.id })
    if (message.attempts === 1) throw new Error("rolls back")
  })
})
await requeue.consume<{ of: string }>("receipts", {}, ({ body }) => {
  console.log(`receipt of ${body.of}, ${rows()} row`)
  ended.resolve()
})
await requeue.send("payments", { amount: 5 }, { id: "p1" })
await ended.promise
await requeue.close()
db.close()
rmSync(folder, { recursive: true })

// prints:
// attempt 1, 0 rows
// attempt 2, 0 rows
// receipt of p1, 1 row
