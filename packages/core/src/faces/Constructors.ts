/** Constructors that the Promise API exports under other names. Their errors show the name that the program called. */
import * as QueueDefinition from "../message/QueueDefinition.ts"
import * as DeadLetterBudget from "../policy/DeadLetterBudget.ts"
import * as RetryPolicy from "../policy/RetryPolicy.ts"

/**
 * Returns the result of `make`. If `make` throws, the error begins with `call` instead of the name of the module's
 * function.
 */
export const named = <A>(call: string, make: () => A): A => {
  try {
    return make()
  } catch (error) {
    if (!(error instanceof RangeError)) throw error
    throw new RangeError(error.message.replace(/^\w+\.\w+/, call))
  }
}

/**
 * Defines a queue: its name, the schema or codec of its bodies, and the default delay of its messages.
 *
 * @throws RangeError when the name does not have 1 to 200 characters, an option is unknown or of the wrong kind, or there are
 * both a codec and a schema
 *
 * @example
 * ```ts
 * import { queue, text } from "@requeue/core/promise"
 *
 * const lines = queue("lines", { codec: text, delay: "1 second" })
 * ```
 */
export const queue = <A = QueueDefinition.AnyBody, I = A>(
  name: string,
  options: QueueDefinition.Options<A, I> = {}
): QueueDefinition.QueueDefinition<A, I> => named("queue", () => QueueDefinition.make(name, options))

/**
 * Builds a retry policy.
 *
 * @throws RangeError when an option is unknown or out of range, both `maxRetries` and `maxAttempts` are given,
 * `backoff` was not made by a constructor such as `exponential`, or the name of a dead-letter queue is empty
 *
 * @example
 * ```ts
 * import { linear, retryPolicy } from "@requeue/core/promise"
 *
 * const retry = retryPolicy({ maxRetries: 2, backoff: linear("10 seconds") })
 * ```
 */
export const retryPolicy = (options: RetryPolicy.Options = {}): RetryPolicy.RetryPolicy =>
  named("retryPolicy", () => RetryPolicy.make(options))

/**
 * Builds a dead-letter budget: the consumer stops when `max` dead letters have used it up. Each success adds
 * `perSuccess` to the budget, up to `max`. With the default 0.1, ten successes allow one more dead letter.
 *
 * @throws RangeError when `max` is not a whole number >= 1, `perSuccess` is negative or not finite, or an option is
 * unknown
 */
export const deadLetterBudget = (options: DeadLetterBudget.Options): DeadLetterBudget.DeadLetterBudget =>
  named("deadLetterBudget", () => DeadLetterBudget.make(options))
