/** Options of a consumer, their defaults, and the checks that must pass before it starts. */
import * as Effect from "effect/Effect"
import type { BatchPolicy } from "../policy/BatchPolicy.ts"
import type { Capabilities, Lease } from "../port/Capabilities.ts"
import type { ConfigurationError } from "../options/ConfigurationError.ts"
import type { ConsumerBackoff } from "../policy/ConsumerBackoff.ts"
import * as DeadLetterBudget from "../policy/DeadLetterBudget.ts"
import * as Delay from "../message/Delay.ts"
import type { Hook } from "../observe/Event.ts"
import * as Feasibility from "../port/Feasibility.ts"
import * as OptionNames from "../options/OptionNames.ts"
import * as RetryPolicy from "../policy/RetryPolicy.ts"

/** Options of a consumer. All of them may be left out. */
export interface Options {
  /**
   * When and how often a failed message is delivered again, and where it goes in the end. Default: 3 retries at once,
   * then the queue `<queue>.dlq`.
   */
  readonly retry?: RetryPolicy.RetryPolicy | undefined
  /**
   * Delay of retries for which neither the handler, nor its error, nor the policy has one, 0 to 24 hours; a number
   * counts milliseconds. Default 0.
   */
  readonly retryDelay?: Delay.Input | undefined
  /**
   * How messages are gathered into batches. Default: single messages for a message handler; 10 messages or 5 seconds
   * for a batch handler.
   */
  readonly batch?: BatchPolicy | undefined
  /** Number of batches that may be in progress at a time, 1 to 1,000. Default 1. */
  readonly concurrency?: number | undefined
  /**
   * Longest run of a handler, 1 ms to 12 hours, or `"unlimited"`; a number counts milliseconds. A run that takes longer
   * is interrupted and has failed. Default 10 minutes, or nine tenths of the broker's longest lease where that is less.
   */
  readonly handlerTimeout?: Delay.Input | "unlimited" | undefined
  /** When the whole consumer pauses because its messages fail. Default: never. */
  readonly consumerBackoff?: ConsumerBackoff | undefined
  /** How many dead letters the consumer may make before it stops itself. Default: any number. */
  readonly deadLetterBudget?: DeadLetterBudget.Options | undefined
  /**
   * How long handlers may go on after a shutdown began, before they are interrupted, 0 to 24 hours; a number counts
   * milliseconds. Default 30 seconds.
   */
  readonly drainTimeout?: Delay.Input | undefined
  /**
   * How to treat delays that the broker cannot honour: `"fail"` refuses to start, `"clamp"` shortens them to the
   * longest that it can. Default `"fail"`.
   */
  readonly onLimit?: "fail" | "clamp" | undefined
  /** Called with everything that happens to every message. Default: nothing is called. */
  readonly onEvent?: Hook | undefined
}

/** Default of `handlerTimeout` in milliseconds, where the broker's longest lease allows it: 10 minutes. */
export const defaultHandlerTimeout = 10 * 60_000

/** The names of all options, by which unknown ones are found. */
export const names: OptionNames.Of<Options> = {
  retry: true,
  retryDelay: true,
  batch: true,
  concurrency: true,
  handlerTimeout: true,
  consumerBackoff: true,
  deadLetterBudget: true,
  drainTimeout: true,
  onLimit: true,
  onEvent: true
}

/**
 * Checks the options and fills in their defaults; durations become milliseconds. `lease` is the broker's, if it has
 * one.
 *
 * @throws RangeError when an option is out of its range
 */
export const resolve = (options: Options, lease?: Lease) => ({
  retry: options.retry === undefined ? RetryPolicy.make() : RetryPolicy.from(options.retry),
  deadLetterBudget:
    options.deadLetterBudget === undefined ? undefined : DeadLetterBudget.from(options.deadLetterBudget),
  retryDelay:
    options.retryDelay === undefined
      ? undefined
      : Delay.constrain("Consumer.start: retryDelay", options.retryDelay, 0, Delay.max),
  handlerTimeout:
    options.handlerTimeout === "unlimited"
      ? Number.POSITIVE_INFINITY
      : Delay.constrain(
          "Consumer.start: handlerTimeout",
          options.handlerTimeout ?? Math.min(defaultHandlerTimeout, longestIn(lease)),
          1,
          12 * 60 * 60_000
        ),
  drainTimeout: Delay.constrain("Consumer.start: drainTimeout", options.drainTimeout ?? 30_000, 0, Delay.max),
  concurrency: concurrencyOf(options.concurrency ?? 1),
  onLimit: options.onLimit ?? "fail"
})

/** The longest run in milliseconds that leaves a tenth of the longest lease for settling. */
const longestIn = (lease: Lease | undefined): number =>
  lease === undefined ? Number.POSITIVE_INFINITY : lease.max * 0.9

const concurrencyOf = (concurrency: number): number => {
  if (Number.isSafeInteger(concurrency) && concurrency >= 1 && concurrency <= 1000) return concurrency
  throw new RangeError(`Consumer.start: concurrency must be a whole number from 1 to 1000, got ${concurrency}`)
}

/**
 * Fails when the broker cannot do what the options ask, or when dead letters would come back to their own queue.
 * Consumers call it before they subscribe.
 */
export const verify = (
  resolved: ReturnType<typeof resolve>,
  capabilities: Capabilities,
  queue: string
): Effect.Effect<void, ConfigurationError> => {
  const refusal = Feasibility.refusal(Feasibility.check(resolved, capabilities, queue), capabilities, queue)
  return refusal === undefined ? Effect.void : Effect.fail(refusal)
}
