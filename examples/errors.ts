// Errors that decide: never retry, retry later, drop. Run: node examples/errors.ts
import { connect, DropError, PermanentError, RetryLaterError } from "@requeue/core/promise"

const requeue = await connect("memory:", { logger: false })
const ended = Promise.withResolvers<void>()
let left = 3

await requeue.consume<{ status: number }>(
  "calls",
  {
    retry: { maxRetries: 5 },
    onEvent: (event) => {
      if (event._tag === "RetryScheduled") console.log(`retried in ${event.delay} ms`)
      if (event._tag === "DeadLettered") console.log(`dead-lettered: ${event.reason}`)
      if (event._tag === "Dropped") console.log("dropped")
      if (event._tag === "Succeeded") console.log("succeeded")
      if (event._tag !== "RetryScheduled" && event._tag !== "Received" && event._tag !== "AttemptFailed") left--
      if (left === 0) ended.resolve()
    }
  },
  async ({ attempts, body }) => {
    if (body.status === 410) throw new PermanentError("gone")
    if (body.status === 404) throw new DropError("this message is not needed")
    if (attempts === 1) throw new RetryLaterError({ message: "busy", retryAfter: 0.05 }) // seconds
  }
)
for (const status of [410, 404, 429]) await requeue.send("calls", { status })
await ended.promise
await requeue.close()

// prints:
// dead-lettered: permanent
// dropped
// retried in 50 ms
// succeeded
