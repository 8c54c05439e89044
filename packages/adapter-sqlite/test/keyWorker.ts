/**
 * A consumer of messages with keys in another process, to be killed: `node keyWorker.ts <path>`. It writes a row for each message, in
 * the transaction of its ack. Of 20 messages of a key, one fails once, and one until the table `repaired` has it.
 */
import { DatabaseSync } from "node:sqlite"
import { type Handler } from "@requeue/core"
import { connect } from "@requeue/core/promise"
import { adapter } from "../src/index.ts"

const [path] = process.argv.slice(2)
const requeue = await connect(`sqlite:${path}?lease=2000&durability=normal`, { adapters: [adapter], logger: false })
const db = new DatabaseSync(path!, { timeout: 60_000 })
db.exec("PRAGMA synchronous = NORMAL")
const insert = db.prepare("INSERT INTO done (key, n) VALUES (?, ?)")
const repaired = db.prepare("SELECT 1 FROM repaired WHERE id = ?")

type Work = { readonly key: string; readonly n: number }

const isFailing = ({ attempts, body: { n }, id }: Handler.Received<Work>): boolean => {
  if (n % 20 === 10) return attempts === 1
  return n % 20 === 0 && repaired.get(id) === undefined
}

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

await requeue.consumeBatch<Work>(
  "work",
  {
    batch: { maxBatchSize: 100, maxBatchTimeout: 0 },
    concurrency: 3,
    retry: { maxRetries: 1, maxDeliveries: "unlimited", afterDeadLetter: "park" }
  },
  (batch) => {
    const { messages } = batch
    const done = messages.filter((message) => !isFailing(message))
    for (const message of messages) if (!done.includes(message)) message.fail(new Error("no"))
    if (done.length === 0) return
    transaction(() => {
      void batch.within(db)
      for (const { body, key } of done) insert.run(key!, body.n)
    })
  }
)
