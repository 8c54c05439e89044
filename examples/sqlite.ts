// SQLite: messages outlive the process that sent them. Run: node examples/sqlite.ts
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { connect } from "@requeue/core/promise"

const folder = mkdtempSync(join(tmpdir(), "requeue-"))
const url = `sqlite:${join(folder, "queue.db")}`

const producer = await connect(url)
await producer.send("orders", { total: 9.5 })
await producer.close()

const consumer = await connect(url, { logger: false })
const delivered = Promise.withResolvers<unknown>()
await consumer.consume("orders", {}, (message) => delivered.resolve(message.body))
console.log("delivered", await delivered.promise)
await consumer.close()
rmSync(folder, { recursive: true })

// prints:
// delivered { total: 9.5 }
