/**
 * Settlements: how a delivery ends. The core decides the settlement, and the adapter translates it into operations of
 * its broker.
 */
import type { Delay } from "./Delay.ts"
import type { Truncation, ErrorSummary, Reason } from "./Metadata.ts"

/**
 * How a delivery ends. Delays are in milliseconds. `cut` makes a copy smaller after the broker refused a larger one.
 *
 * - `Ack`: removes the message; it is done.
 * - `Retry`: delivers the message again after `delay`, never earlier; the attempt counts. `error` is the error of the
 *   attempt.
 * - `DeadLetter`: copies the message to `queue`, and only then removes the original. `parks`: the letter keeps its place, so it
 *   holds up the later messages of its key.
 * - `Drop`: removes the message without a trace in the broker; only if the policy or the error requires it.
 * - `Release`: returns the message unchanged to its queue, for delivery after `delay`: at shutdown, or if the message
 *   was delivered too early. If the broker supports it, the attempt does not count. `isBegun`: a handler has begun the
 *   message.
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
      readonly parks?: true | undefined
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

/** Delivers the message again after `delay` milliseconds. `error` is the error of the attempt, if the attempt failed. */
export const Retry = (delay: Delay, error?: ErrorSummary): Settlement => ({ _tag: "Retry", delay, error })

/** Moves the message to a dead-letter queue. `parks`: the letter holds up the later messages of its key. */
export const DeadLetter = (reason: Reason, queue: string, error: ErrorSummary, parks = false): Settlement => ({
  _tag: "DeadLetter",
  reason,
  queue,
  error,
  ...(parks ? { parks } : undefined)
})

/** Removes a message without a dead letter. */
export const Drop = (reason: Reason | "dropped", error: ErrorSummary): Settlement => ({ _tag: "Drop", reason, error })

/** Returns the message to its queue, for delivery after `delay` milliseconds. Default: at once. */
export const Release = (delay: Delay = 0): Settlement => ({ _tag: "Release", delay })
