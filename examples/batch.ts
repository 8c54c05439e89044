// Batches with one result per message. Run: node examples/batch.ts
import { connect } from "@requeue/core/promise"

const requeue = await connect("memory:", { logger: false })
const ended = Promise.withResolvers<void>()
let rows = 0

await requeue.consumeBatch<{ id: number; valid: boolean }>(
  "rows",
  { batch: { maxBatchSize: 3, maxBatchTimeout: "100 millis" }, retry: { maxRetries: 1 } },
  async (batch) => {
    console.log(`batch of ${batch.messages.length}, attempt ${batch.messages[0]?.attempts}`)
    for (const message of batch.messages) {
      if (message.body.valid || message.attempts > 1) message.ack()
      else message.retry()
    }
    rows += batch.messages.length
    if (rows === 4) ended.resolve()
  }
)
await requeue.sendBatch("rows", [
  { body: { id: 1, valid: true } },
  { body: { id: 2, valid: false } },
  { body: { id: 3, valid: true } }
])
await ended.promise
await requeue.close()

// prints:
// batch of 3, attempt 1
// batch of 1, attempt 2
