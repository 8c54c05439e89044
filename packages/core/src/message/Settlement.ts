/**
 * Settlements: the core decides how a delivery ends, and the adapter translates that into its broker's own operations.
 */
import type { Delay } from "./Delay.ts"
import type { Truncation, ErrorSummary, Reason } from "./Metadata.ts"

/**
 * How a delivery ends. Delays are in milliseconds. `cut` makes the copy smaller, where there is one: the broker has
 * refused a larger one.
 *
 * - `Ack`: removes the message; it is done.
 * - `Retry`: delivers the message again after `delay`, never earlier; the attempt counts.
 * - `DeadLetter`: copies the message to `queue`, and removes the original only then.
 * - `Drop`: removes the message without a trace in the broker; only where the policy or the error asks for it.
 * - `Release`: gives the message back untouched, to be delivered after `delay`: at shutdown, or because it came before its
 *   time. The attempt does not count, where the broker can do that. `isBegun` tells that a handler has had the message.
 */
export type Settlement =
  | { readonly _tag: "Ack" }
  | {
      readonly _tag: "Retry"
      readonly delay: Delay
      readonly error: ErrorSummary | undefined
      readonly cut?: Truncation | undefined
    }
  | {
      readonly _tag: "DeadLetter"
      readonly reason: Reason
      readonly queue: string
      readonly error: ErrorSummary
      readonly cut?: Truncation | undefined
    }
  | { readonly _tag: "Drop"; readonly reason: Reason | "dropped"; readonly error: ErrorSummary }
  | {
      readonly _tag: "Release"
      readonly delay: Delay
      readonly isBegun?: boolean | undefined
      readonly cut?: Truncation | undefined
    }

/** Removes a message that is done. */
export const Ack: Settlement = { _tag: "Ack" }

/** Delivers the message again after `delay` milliseconds. `error` is that of the failed attempt, if it failed. */
export const Retry = (delay: Delay, error?: ErrorSummary): Settlement => ({ _tag: "Retry", delay, error })

/** Moves the message to a dead-letter queue. */
export const DeadLetter = (reason: Reason, queue: string, error: ErrorSummary): Settlement => ({
  _tag: "DeadLetter",
  reason,
  queue,
  error
})

/** Removes a message that is given up, and keeps no dead letter. */
export const Drop = (reason: Reason | "dropped", error: ErrorSummary): Settlement => ({ _tag: "Drop", reason, error })

/** Gives the message back, to be delivered after `delay` milliseconds. Default: at once. */
export const Release = (delay: Delay = 0): Settlement => ({ _tag: "Release", delay })
