// SQS FIFO: a retry keeps the order of its group. Run: BROKER_URL=sqs://eu-west-1 node examples/sqs-fifo.ts
import { connect } from "@requeue/core/promise"

const requeue = await connect(process.env["BROKER_URL"]!, { logger: false })
const ended = Promise.withResolvers<void>()
const handled: Array<string> = []

await requeue.consume<string>(
  "examples.fifo",
  { concurrency: 10, retry: { maxRetries: 3 }, retryDelay: "1 second" },
  (message) => {
    if (message.body === "a1" && message.attempts === 1) throw new Error("503")
    if (handled.push(message.body) === 3) ended.resolve()
  }
)
for (const body of ["a1", "a2", "a3"]) {
  await requeue.send("examples.fifo", body, { key: "account-a" })
}
await ended.promise
console.log(handled.join(" "))
await requeue.close()

// prints:
// a1 a2 a3
