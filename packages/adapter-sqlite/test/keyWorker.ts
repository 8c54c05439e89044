/**
 * A consumer of messages with keys in another process, to be killed: `node keyWorker.ts <path>`. It writes a row for each message, in
 * the transaction of its ack.
 */
import { DatabaseSync } from "node:sqlite"
import { KeyedWork } from "@requeue/conformance"
import { connect } from "@requeue/core/promise"
import { adapter } from "../src/index.ts"

const [path] = process.argv.slice(2)
const requeue = await connect(`sqlite:${path}?lease=2000&durability=normal`, { adapters: [adapter], logger: false })
const db = new DatabaseSync(path!, { timeout: 60_000 })
db.exec("PRAGMA synchronous = NORMAL")
const insert = db.prepare("INSERT INTO done (key, n) VALUES (?, ?)")
const repaired = db.prepare("SELECT 1 FROM repaired WHERE id = ?")

const transaction = (body: () => void): void => {
  db.exec("BEGIN IMMEDIATE")
  try {
    body()
    db.exec("COMMIT")
  } catch (error) {
    db.exec("ROLLBACK")
    throw error
  }
}

await requeue.consumeBatch<KeyedWork.Work>(
  "work",
  {
    batch: { maxBatchSize: 100, maxBatchTimeout: 0 },
    concurrency: 3,
    retry: { ...KeyedWork.retry, afterDeadLetter: "park" }
  },
  async (batch) => {
    const { messages } = batch
    const failing = await KeyedWork.failing(messages, (id) => repaired.get(id) !== undefined)
    for (const message of failing) message.fail(new Error("no"))
    const done = messages.filter((message) => !failing.has(message))
    if (done.length === 0) return
    transaction(() => {
      void batch.within(db)
      for (const { body, key } of done) insert.run(key!, body.n)
    })
  }
)
