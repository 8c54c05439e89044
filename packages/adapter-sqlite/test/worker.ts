/**
 * A consumer in another process, to be killed: `node worker.ts <url> <log> <name>`. It appends a line of JSON to the log for the
 * begin and the end of each run. A message fails as often as its body has it (`null`: always), 50 ms apart. Each success sends a message to
 * `receipts`.
 */
import { appendFileSync } from "node:fs"
import { connect, sequence } from "@requeue/core/promise"
import { adapter } from "../src/index.ts"

const [url, log, name] = process.argv.slice(2)
const requeue = await connect(url!, { adapters: [adapter], logger: false })
const write = (line: object) => appendFileSync(log!, `${JSON.stringify(line)}\n`)
const retry = { maxRetries: 5, maxDeliveries: 1000, backoff: sequence([50]) }

await requeue.consume("work", { concurrency: 10, retry }, async (message) => {
  const { fails } = message.body as { readonly fails: number | null } // The test sends it.
  const run = { name, id: message.id, attempts: message.attempts }
  write({ ...run, at: Date.now(), is: "begin" })
  await new Promise((resolve) => setImmediate(resolve))
  // A killed process may have used up attempts without a run, so only the first ones are sure to fail.
  const isFailure = fails === null || message.attempts <= fails
  if (!isFailure) await requeue.send("receipts", { of: message.id })
  write({ ...run, at: Date.now(), is: isFailure ? "failure" : "end" })
  if (isFailure) throw new Error("no")
})
write({ name, at: Date.now(), is: "ready" })
