// NSQ: two channels of one topic, each with its own retries. Run: BROKER_URL=nsq://127.0.0.1:4150 node examples/nsq.ts
import { connect } from "@requeue/core/promise"

const requeue = await connect(process.env["BROKER_URL"]!, { logger: false })
const [billed, shipped] = [Promise.withResolvers<number>(), Promise.withResolvers<number>()]

await requeue.consume("examples/billing", { retry: { maxRetries: 3 }, retryDelay: "100 millis" }, (message) => {
  if (message.attempts === 1) throw new Error("503")
  billed.resolve(message.attempts)
})
await requeue.consume("examples/shipping", {}, (message) => shipped.resolve(message.attempts))

await requeue.send("examples", { total: 9.5 }) // to all channels of the topic
console.log("billing: attempt", await billed.promise)
console.log("shipping: attempt", await shipped.promise)
await requeue.close()

// prints:
// billing: attempt 2
// shipping: attempt 1
