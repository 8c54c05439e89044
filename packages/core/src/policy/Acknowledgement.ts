/**
 * Acknowledgement: which of a handler's calls decides what happens to a message.
 *
 * The first call that reaches a message sets its verdict. `ackAll` and `retryAll` reach every message that has no
 * verdict. A message without a verdict is acked when the handler succeeds and retried when it fails. The delay of a
 * retry is chosen separately: the first delay given on the message, else the first delay given to `retryAll`, else the
 * policy's delay. `fail` is a retry with an error, which counts as if the message's handler had thrown that error.
 *
 * The rule treats each message of a batch alone. {@link record} applies a call to a verdict, and {@link finalise}
 * applies the end of the handler. Both are pure.
 */
import type { Delay } from "../message/Delay.ts"

/**
 * A call that a handler makes, such as `ack()`. `index` is the message's position in its batch, from 0. Delays are in
 * milliseconds.
 */
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

/** The decision for one message. `by` is its origin: a call on the message or the batch, or the handler's outcome. */
export type Verdict =
  | { readonly _tag: "Ack"; readonly by: "message" | "batch" | "outcome" }
  | {
      readonly _tag: "Retry"
      readonly by: "message" | "batch" | "outcome"
      /** The delay given on the message, in milliseconds; `undefined` if none was given. */
      readonly delay: Delay | undefined
      /** The first delay given to `retryAll`, in milliseconds; `delay` overrides it. */
      readonly batchDelay?: Delay | undefined
      /** Whether the retry counts towards consumer backoff. */
      readonly backoff: boolean
      /** The error given to `fail`, if that call made the decision. */
      readonly failed?: { readonly error: unknown }
    }

/** Returns the verdict after a call that reaches the message, or the same object if the call changes nothing. */
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

/** Whether an ignored call contradicts the verdict. A second ack, for example, does not contradict an ack. */
export const contradicts = (self: Verdict | undefined, call: Call): boolean => {
  const wanted = call._tag === "Ack" || call._tag === "AckAll" ? "Ack" : "Retry"
  const hasDelay = "delay" in call && call.delay !== undefined
  return hasDelay || (self !== undefined && self._tag !== wanted)
}

type Retry = Extract<Verdict, { _tag: "Retry" }>

/** Whether a verdict is a retry that may still get a delay. */
const isOpen = (verdict: Verdict | undefined): verdict is Retry =>
  verdict?._tag === "Retry" && verdict.delay === undefined

/**
 * Whether no later call can change the verdict: an ack, or a retry with its own delay. The message can then be settled
 * before its batch ends.
 */
export const isFinal = (verdict: Verdict | undefined): verdict is Verdict => verdict !== undefined && !isOpen(verdict)

/**
 * Returns the final verdict of a message, after its handler has ended. `self` is the verdict of the handler's calls;
 * `undefined` if no call reached the message.
 */
export const finalise = (self: Verdict | undefined, outcome: Outcome): Verdict => {
  if (self === undefined) return byOutcome[outcome]
  return isOpen(self) && self.batchDelay !== undefined ? { ...self, delay: self.batchDelay } : self
}

const byOutcome: { readonly [K in Outcome]: Verdict } = {
  success: { _tag: "Ack", by: "outcome" },
  failure: { _tag: "Retry", by: "outcome", delay: undefined, backoff: true }
}
