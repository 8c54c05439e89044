/**
 * Acknowledgement: which of a handler's calls decides what happens to a message.
 *
 * Every message has one verdict, set by the first call that reaches it. `ackAll` and `retryAll` reach every message that
 * has none yet. A message without a verdict when the handler ends is acked on success and retried on failure. The delay
 * of a retry is chosen apart from the verdict: the first one given on the message itself, else the first one given to
 * `retryAll`, else the policy's.
 *
 * A `fail` is a retry with an error of the message's own, which counts as if its handler had thrown it.
 *
 * The rule is about one message, whatever the size of its batch: one pure reducer over the calls that reach it,
 * {@link record}, and one pure function, {@link finalise}.
 */
import type { Delay } from "../message/Delay.ts"

/** One call of the handler. `index` is the message's place in its batch, from 0; delays are in milliseconds. */
export type Call =
  | { readonly _tag: "Ack"; readonly index: number }
  | { readonly _tag: "Retry"; readonly index: number; readonly delay?: Delay | undefined; readonly backoff?: boolean }
  | {
      readonly _tag: "Fail"
      readonly index: number
      readonly error: unknown
      readonly delay?: Delay | undefined
      readonly backoff?: boolean
    }
  | { readonly _tag: "AckAll" }
  | { readonly _tag: "RetryAll"; readonly delay?: Delay | undefined; readonly backoff?: boolean }

/** How the handler ended. */
export type Outcome = "success" | "failure"

/** The decision for one message, and by what it was made: a call on the message or the batch, or the handler's outcome. */
export type Verdict =
  | { readonly _tag: "Ack"; readonly by: "message" | "batch" | "outcome" }
  | {
      readonly _tag: "Retry"
      readonly by: "message" | "batch" | "outcome"
      /** The explicit delay, in milliseconds; `undefined` for the policy's. */
      readonly delay: Delay | undefined
      /** The first delay given to `retryAll`, which holds unless one is given on the message itself. */
      readonly batchDelay?: Delay | undefined
      /** Whether the retry counts towards consumer backoff. */
      readonly backoff: boolean
      /** The error that the message has failed with, if `fail` decided it. */
      readonly failed?: { readonly error: unknown }
    }

/**
 * The verdict of a message after one more call that reaches it: one on the message, or on its batch. A call that changes
 * nothing is ignored: the same object is returned.
 *
 * @example
 * ```ts
 * import { Acknowledgement } from "@requeue/core/port"
 *
 * const acked = Acknowledgement.record(undefined, { _tag: "Ack", index: 0 })
 * Acknowledgement.record(acked, { _tag: "RetryAll" }) === acked // => true
 * ```
 */
export const record = (self: Verdict | undefined, call: Call): Verdict => {
  switch (call._tag) {
    case "Ack":
      return self ?? { _tag: "Ack", by: "message" }
    case "AckAll":
      return self ?? { _tag: "Ack", by: "batch" }
    case "Retry":
    case "Fail":
      return onMessage(self, call)
    case "RetryAll":
      return onBatch(self, call)
  }
}

const onMessage = (
  self: Verdict | undefined,
  { delay, ...call }: Extract<Call, { _tag: "Retry" | "Fail" }>
): Verdict => {
  if (self !== undefined) return delay !== undefined && isOpen(self) ? { ...self, delay } : self
  const retry: Verdict = { _tag: "Retry", by: "message", delay, backoff: call.backoff ?? true }
  return call._tag === "Fail" ? { ...retry, failed: { error: call.error } } : retry
}

const onBatch = (
  self: Verdict | undefined,
  { backoff = true, delay }: Extract<Call, { _tag: "RetryAll" }>
): Verdict => {
  const verdict = self ?? { _tag: "Retry", by: "batch", delay: undefined, backoff }
  const isWanted = delay !== undefined && isOpen(verdict) && verdict.batchDelay === undefined
  return isWanted ? { ...verdict, batchDelay: delay } : verdict
}

/** Whether a call that was ignored asked for something else than was decided. A second ack, for example, did not. */
export const contradicts = (self: Verdict | undefined, call: Call): boolean => {
  const wanted = call._tag === "Ack" || call._tag === "AckAll" ? "Ack" : "Retry"
  const hasDelay = "delay" in call && call.delay !== undefined
  return hasDelay || (self !== undefined && self._tag !== wanted)
}

type Retry = Extract<Verdict, { _tag: "Retry" }>

/** Whether a verdict is a retry to which a delay may still be given. */
const isOpen = (verdict: Verdict | undefined): verdict is Retry =>
  verdict?._tag === "Retry" && verdict.delay === undefined

/**
 * Whether no later call can change the verdict: an ack, or a retry with a delay of its own. The message then need not wait
 * for the rest of its batch.
 */
export const isFinal = (verdict: Verdict | undefined): verdict is Verdict => verdict !== undefined && !isOpen(verdict)

/** The verdict of a message once the handler has ended; `undefined` for one that no call reached. */
export const finalise = (self: Verdict | undefined, outcome: Outcome): Verdict => {
  if (self === undefined) return byOutcome[outcome]
  return isOpen(self) && self.batchDelay !== undefined ? { ...self, delay: self.batchDelay } : self
}

const byOutcome: { readonly [K in Outcome]: Verdict } = {
  success: { _tag: "Ack", by: "outcome" },
  failure: { _tag: "Retry", by: "outcome", delay: undefined, backoff: true }
}
