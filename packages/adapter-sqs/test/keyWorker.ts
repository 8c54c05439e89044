/**
 * A consumer of messages with keys in another process, to be killed: `node keyWorker.ts <url> <path>`. It writes a row for each message
 * before its ack.
 */
import { DatabaseSync } from "node:sqlite"
import { KeyedWork } from "@requeue/conformance"
import { connect } from "@requeue/core/promise"
import { adapter } from "../src/index.ts"

const [url, path] = process.argv.slice(2)
const options = { url: url!, visibilityTimeout: 4000, waitTime: 1000 }
const requeue = await connect(options, { adapters: [adapter], logger: false })
const db = new DatabaseSync(path!, { timeout: 60_000 })
db.exec("PRAGMA synchronous = OFF")
const insert = db.prepare("INSERT INTO done (key, n) VALUES (?, ?)")
const repaired = db.prepare("SELECT 1 FROM repaired WHERE id = ?")

await requeue.consume<KeyedWork.Work>("work.fifo", { concurrency: 50, retry: KeyedWork.retry }, async (message) => {
  const failing = await KeyedWork.failing([message], (id) => repaired.get(id) !== undefined)
  if (failing.size > 0) throw new Error("no")
  insert.run(message.key!, message.body.n)
})
