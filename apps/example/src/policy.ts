/** The options of the dispatcher's consumer: all its retrying, as data. */
import { exponential } from "@requeue/core/promise"
import { RetryPolicy } from "@requeue/core"

export const queue = "webhooks"
export const deadLetterQueue = "webhooks.dlq"

export const policy = {
  retry: RetryPolicy.make({
    maxRetries: 5,
    // Short enough for a demo. A real sender would start with seconds and continue for a day.
    backoff: exponential("200 millis", { factor: 2, max: "5 seconds", jitter: "equal" }),
    deadLetter: deadLetterQueue
  }),
  concurrency: 16,
  // As long as GitHub waits for a subscriber. A healthy one takes a fraction of it, even on a slow or busy machine. So only
  // subscribers that never reply time out, and the result depends on the seed alone.
  handlerTimeout: "10 seconds"
  // No `consumerBackoff`: it slows down the whole consumer, which helps when all messages need one dependency that is down. Here
  // each subscriber fails separately, and the others must not wait for it.
} as const
