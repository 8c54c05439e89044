/**
 * A queue and its retry policy as the objects that Acme needs for them, as data.
 *
 * Use it to see what a consumer would create, before it does.
 */
import { RetryPolicy } from "@requeue/core/port"

/** A queue, and the policy of its consumer. */
export interface Request {
  readonly queue: string
  readonly retry: RetryPolicy.RetryPolicy
}

/** The queues that Acme needs. */
export interface Plan {
  readonly queue: string
  /** The queues that dead letters may go to. */
  readonly deadLetterQueues: ReadonlyArray<string>
}

/**
 * The plan of a queue.
 *
 * @example
 * ```ts
 * import { AcmePlan } from "@requeue/adapter-acme"
 * import { RetryPolicy } from "@requeue/core"
 *
 * const plan = AcmePlan.make({ queue: "orders", retry: RetryPolicy.make({ maxRetries: 5 }) })
 * plan.deadLetterQueues // => ["orders.dlq"]
 * ```
 */
export const make = ({ queue, retry }: Request): Plan => ({
  queue,
  deadLetterQueues: RetryPolicy.deadLetterQueues(retry, queue)
})

/** The names of all queues of a plan, each once. */
export const queuesOf = ({ deadLetterQueues, queue }: Plan): ReadonlyArray<string> => [
  ...new Set([queue, ...deadLetterQueues])
]
