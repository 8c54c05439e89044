/** How the dispatcher consumes: the whole of its retrying, as data. */
import { exponential } from "@requeue/core/promise"
import { RetryPolicy } from "@requeue/core"

export const queue = "webhooks"
export const deadLetterQueue = "webhooks.dlq"

export const policy = {
  retry: RetryPolicy.make({
    maxRetries: 5,
    // Scaled to a demo that is watched. A real sender would start at seconds and go on for a day.
    backoff: exponential("200 millis", { factor: 2, max: "5 seconds", jitter: "equal" }),
    deadLetter: deadLetterQueue
  }),
  concurrency: 16,
  // As long as GitHub waits for a subscriber. One that is well takes a fraction of it even on a machine that is slow or
  // busy, so that only one that never answers is timed out: were it a race, the outcome would not be the seed's.
  handlerTimeout: "10 seconds"
  // No `consumerBackoff`: it slows down the whole consumer, which is right when all messages need the one dependency
  // that is down. Here each subscriber fails for itself, and the others are not to wait for it.
} as const
