/**
 * A consumer of messages with keys in another process, to be killed: `node keyWorker.ts <url>`. It writes a row for each message, in
 * the transaction of its ack. Of 20 messages of a key, one fails once, and one until the table `repaired` has it.
 */
import { type Handler } from "@requeue/core"
import { connect } from "@requeue/core/promise"
import { Pool } from "pg"
import { adapter } from "../src/index.ts"

const [url] = process.argv.slice(2)
const requeue = await connect({ url: url!, lease: 2000 }, { adapters: [adapter], logger: false })
const pool = new Pool({ connectionString: url })

type Work = { readonly n: number }

const isFailing = async ({ attempts, body: { n }, id }: Handler.Received<Work>): Promise<boolean> => {
  if (n % 20 === 10) return attempts === 1
  if (n % 20 !== 0) return false
  const { rowCount } = await pool.query("SELECT 1 FROM repaired WHERE id = $1", [id])
  return rowCount === 0
}

await requeue.consumeBatch<Work>(
  "work",
  {
    batch: { maxBatchSize: 100, maxBatchTimeout: 0 },
    concurrency: 3,
    retry: { maxRetries: 1, maxDeliveries: "unlimited", afterDeadLetter: "park" }
  },
  async (batch) => {
    const { messages } = batch
    const failing = new Set<unknown>()
    for (const message of messages) if (await isFailing(message)) failing.add(message)
    for (const message of messages) if (failing.has(message)) message.fail(new Error("no"))
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
