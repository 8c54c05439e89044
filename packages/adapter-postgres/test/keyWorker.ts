/**
 * A consumer of messages with keys in another process, to be killed: `node keyWorker.ts <url>`. It writes a row for each message, in
 * the transaction of its ack.
 */
import { KeyedWork } from "@requeue/conformance"
import { connect } from "@requeue/core/promise"
import { Pool } from "pg"
import { adapter } from "../src/index.ts"

const [url] = process.argv.slice(2)
const requeue = await connect({ url: url!, lease: 2000 }, { adapters: [adapter], logger: false })
const pool = new Pool({ connectionString: url })

const isRepaired = async (id: string): Promise<boolean> => {
  const { rowCount } = await pool.query("SELECT 1 FROM repaired WHERE id = $1", [id])
  return rowCount === 1
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
    const failing = await KeyedWork.failing(messages, isRepaired)
    for (const message of failing) message.fail(new Error("no"))
    const done = messages.filter((message) => !failing.has(message))
    if (done.length === 0) return
    const client = await pool.connect()
    try {
      // One of three transactions does not see what was committed since it began.
      await client.query(`BEGIN ISOLATION LEVEL ${done.length % 3 === 0 ? "REPEATABLE READ" : "READ COMMITTED"}`)
      await batch.within(client)
      const values = [done.map(({ key }) => key), done.map(({ body }) => body.n)]
      await client.query("INSERT INTO done (key, n) SELECT * FROM unnest($1::text[], $2::int[])", values)
      await client.query("COMMIT")
    } catch (error) {
      await client.query("ROLLBACK")
      throw error
    } finally {
      client.release()
    }
  }
)
