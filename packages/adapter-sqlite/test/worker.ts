/**
 * A consumer in another process, to be killed: `node worker.ts <path> <log> <name> <form>`. It appends a line of JSON to the log for
 * the begin and the end of each run. A message fails as often as its body has it (`null`: always), 50 ms apart. Each success writes a
 * row and sends a message to `receipts`: in the transaction of its ack with the form `transaction`, else before its ack.
 */
import { appendFileSync } from "node:fs"
import { DatabaseSync } from "node:sqlite"
import { BrokerError, connect, sequence } from "@requeue/core/promise"
import { adapter } from "../src/index.ts"

const [path, log, name, form] = process.argv.slice(2)
const requeue = await connect(`sqlite:${path}?lease=2000`, { adapters: [adapter], logger: false })
const db = new DatabaseSync(path!, { timeout: 60_000 })
const insert = db.prepare("INSERT INTO mine VALUES (?)")
const write = (line: object) => appendFileSync(log!, `${JSON.stringify(line)}\n`)
const retry = { maxRetries: 5, maxDeliveries: 1000, backoff: sequence([50]) }
const no = new Error("no")

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

await requeue.consume("work", { concurrency: 10, retry }, async (message) => {
  const { fails } = message.body as { readonly fails: number | null } // The test sends it.
  const run = { name, id: message.id, attempts: message.attempts }
  write({ ...run, at: Date.now(), is: "begin" })
  await new Promise((resolve) => setImmediate(resolve))
  // A killed process may have used up attempts without a run, so only the first ones are sure to fail.
  const isFailure = fails === null || message.attempts <= fails
  const end = (is: string) => write({ ...run, at: Date.now(), is })
  try {
    if (form === "transaction") {
      transaction(() => {
        void message.within(db)
        insert.run(message.id)
        void requeue.within(db).send("receipts", { of: message.id })
        if (isFailure) throw no
      })
    } else {
      if (isFailure) throw no
      insert.run(message.id)
      await requeue.send("receipts", { of: message.id })
    }
    end("end")
  } catch (error) {
    end(error === no ? "failure" : error instanceof BrokerError ? error.reason : "error")
    throw error
  }
})
write({ name, at: Date.now(), is: "ready" })
