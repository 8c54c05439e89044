// Retries with backoff, and a dead letter after the last one. Run: node examples/retry.ts
import { connect, exponential } from "@requeue/core/promise"

const requeue = await connect("memory:", { logger: false })
const ended = Promise.withResolvers<void>()

await requeue.consume(
  "webhooks",
  {
    retry: { maxRetries: 2, backoff: exponential("20 millis") },
    onEvent: (event) => {
      if (event._tag === "RetryScheduled") console.log(`attempt ${event.attempts} failed, next in ${event.delay} ms`)
      if (event._tag === "DeadLettered") console.log(`dead-lettered to ${event.target}: ${event.reason}`)
      if (event._tag === "DeadLettered") ended.resolve()
    }
  },
  async () => {
    throw new Error("503 Service Unavailable")
  }
)
await requeue.send("webhooks", { url: "https://example.com/hook" })
await ended.promise
await requeue.close()

// prints:
// attempt 1 failed, next in 20 ms
// attempt 2 failed, next in 40 ms
// dead-lettered to webhooks.dlq: retries-exhausted
