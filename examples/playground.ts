// For contributors: change anything here and run it on the sources. Run: npm run playground
// With a broker: BROKER_URL=$(npm run -s brokers -- up rabbitmq) npm run playground
import { connect, exponential } from "@requeue/core/promise"

const requeue = await connect(process.env["BROKER_URL"] ?? "memory:", { logger: "json" })
const ended = Promise.withResolvers<void>()

await requeue.consume<{ id: number }>(
  "playground",
  {
    retry: { maxRetries: 2, backoff: exponential("100 millis") },
    onEvent: (event) => {
      console.log(event)
      if (event._tag === "Succeeded" || event._tag === "DeadLettered") ended.resolve()
    }
  },
  async (message) => {
    if (message.attempts < 3) throw new Error("not yet")
  }
)
await requeue.send("playground", { id: 1 })
await ended.promise
await requeue.close()
