// A row, a message and the ack in one transaction. Run: node examples/transactions.ts
import { MemoryTransaction } from "@requeue/adapter-memory"
import { connect } from "@requeue/core/promise"

const requeue = await connect("memory:", { logger: false })
const ended = Promise.withResolvers<void>()
const rows: Array<string> = []

// With a database, this is its transaction function, and `tx` writes the rows.
const transaction = MemoryTransaction.run

await requeue.consume("payments", { retry: { maxRetries: 1 } }, (message) =>
  transaction(async (tx) => {
    await message.within(tx)
    tx.onCommit(() => rows.push(message.id))
    await requeue.within(tx).send("receipts", { of: message.id })
    console.log(`attempt ${message.attempts}, ${rows.length} rows`)
    if (message.attempts === 1) throw new Error("rolls back")
  })
)
await requeue.consume<{ of: string }>("receipts", {}, ({ body }) => {
  console.log(`receipt of ${body.of}, ${rows.length} row`)
  ended.resolve()
})
await requeue.send("payments", { amount: 5 }, { id: "p1" })
await ended.promise
await requeue.close()

// prints:
// attempt 1, 0 rows
// attempt 2, 0 rows
// receipt of p1, 1 row
