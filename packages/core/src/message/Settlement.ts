/**
 * What is to happen to a delivery. The core decides it, the adapter translates it into its broker's own operations.
 */
import type { Delay } from "./Delay.ts"
import type { ErrorSummary, Reason } from "./Metadata.ts"

/**
 * - `Ack`: done; remove the message.
 * - `Retry`: deliver again after `delay` milliseconds, never earlier, counted as one more attempt.
 * - `DeadLetter`: move the message to `queue`, then remove it. Never the other way round.
 * - `Drop`: remove the message without a trace in the broker. Only where the policy asks for it.
 * - `Release`: give it back untouched after `delay`, not counted where the broker can: at shutdown, or because it came
 *   before its time.
 */
export type Settlement =
  | { readonly _tag: "Ack" }
  | { readonly _tag: "Retry"; readonly delay: Delay; readonly error: ErrorSummary | undefined }
  | { readonly _tag: "DeadLetter"; readonly reason: Reason; readonly queue: string; readonly error: ErrorSummary }
  | { readonly _tag: "Drop"; readonly reason: Reason | "dropped"; readonly error: ErrorSummary }
  | { readonly _tag: "Release"; readonly delay: Delay }

export const Ack: Settlement = { _tag: "Ack" }

export const Retry = (delay: Delay, error?: ErrorSummary): Settlement => ({ _tag: "Retry", delay, error })

export const DeadLetter = (reason: Reason, queue: string, error: ErrorSummary): Settlement => ({
  _tag: "DeadLetter",
  reason,
  queue,
  error
})

export const Drop = (reason: Reason | "dropped", error: ErrorSummary): Settlement => ({ _tag: "Drop", reason, error })

export const Release = (delay: Delay = 0): Settlement => ({ _tag: "Release", delay })
