/** What a consumer can be told, its defaults, and the checks that must pass before it starts. */
import * as Effect from "effect/Effect"
import type { BatchPolicy } from "../policy/BatchPolicy.ts"
import type { Capabilities, Lease } from "../port/Capabilities.ts"
import type { ConfigurationError } from "../options/ConfigurationError.ts"
import type { ConsumerBackoff } from "../policy/ConsumerBackoff.ts"
import type { DeadLetterBudget } from "../policy/DeadLetterBudget.ts"
import * as Delay from "../message/Delay.ts"
import type { Hook } from "../observe/Event.ts"
import * as Feasibility from "../port/Feasibility.ts"
import * as OptionNames from "../options/OptionNames.ts"
import * as RetryPolicy from "../policy/RetryPolicy.ts"

export interface Options {
  /** Default: 3 retries at once, then `<queue>.dlq`. */
  readonly retry?: RetryPolicy.RetryPolicy | undefined
  /** Delay of retries for which neither the handler, nor its error, nor the policy has one. Default 0. */
  readonly retryDelay?: Delay.Input | undefined
  /** Default: single messages for a message handler; 10 messages or 5 seconds for a batch handler. */
  readonly batch?: BatchPolicy | undefined
  /** Batches in progress at a time, 1 to 1,000. Default 1. */
  readonly concurrency?: number | undefined
  /**
   * Longest run of a handler, 1 ms to 12 hours, or `"unlimited"`. Default 10 minutes, or less where the broker's leases
   * end before.
   */
  readonly handlerTimeout?: Delay.Input | "unlimited" | undefined
  /** Default: off. */
  readonly consumerBackoff?: ConsumerBackoff | undefined
  /** Default: none. */
  readonly deadLetterBudget?: DeadLetterBudget | undefined
  /** How long handlers may go on after a shutdown began, before they are interrupted. Default 30 seconds. */
  readonly drainTimeout?: Delay.Input | undefined
  /** What the broker cannot honour: refuse to start (the default), or cut it down to what it can. */
  readonly onLimit?: "fail" | "clamp" | undefined
  /** Told of everything that happens to every message. */
  readonly onEvent?: Hook | undefined
}

/** Longest run of a handler unless told otherwise or the broker's leases end before, in milliseconds. */
export const defaultHandlerTimeout = 10 * 60_000

/** The names of the options, for checking. */
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
 * The checked values, with their defaults.
 *
 * @throws RangeError when an option is out of its range
 */
export const resolve = (options: Options, lease?: Lease) => ({
  retry: options.retry ?? RetryPolicy.make(),
  retryDelay:
    options.retryDelay === undefined
      ? undefined
      : Delay.constrain("Consumer.start: retryDelay", options.retryDelay, 0, Delay.max),
  handlerTimeout:
    options.handlerTimeout === "unlimited"
      ? Number.POSITIVE_INFINITY
      : Delay.constrain(
          "Consumer.start: handlerTimeout",
          options.handlerTimeout ?? Math.min(defaultHandlerTimeout, fitting(lease)),
          1,
          12 * 60 * 60_000
        ),
  drainTimeout: Delay.constrain("Consumer.start: drainTimeout", options.drainTimeout ?? 30_000, 0, Delay.max),
  concurrency: concurrencyOf(options.concurrency ?? 1),
  onLimit: options.onLimit ?? "fail"
})

/** What leaves a tenth of the longest lease for settling. */
const fitting = (lease: Lease | undefined): number => (lease === undefined ? Number.POSITIVE_INFINITY : lease.max * 0.9)

const concurrencyOf = (concurrency: number): number => {
  if (Number.isSafeInteger(concurrency) && concurrency >= 1 && concurrency <= 1000) return concurrency
  throw new RangeError(`Consumer.start: concurrency must be a whole number from 1 to 1000, got ${concurrency}`)
}

/** Fails when the broker cannot do what is asked, or when dead letters would come back to their own queue. */
export const verify = (
  resolved: ReturnType<typeof resolve>,
  capabilities: Capabilities,
  queue: string
): Effect.Effect<void, ConfigurationError> => {
  const refusal = Feasibility.refusal(Feasibility.check(resolved, capabilities, queue), capabilities, queue)
  return refusal === undefined ? Effect.void : Effect.fail(refusal)
}
