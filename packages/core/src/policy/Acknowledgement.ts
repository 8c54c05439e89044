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
 * The rule is one pure reducer over calls, {@link record}, and one pure function, {@link finalise}.
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
      /** Whether the retry counts towards consumer backoff. */
      readonly backoff: boolean
      /** The error that the message has failed with, if `fail` decided it. */
      readonly failed?: { readonly error: unknown }
    }

/** The calls so far, reduced to what they decided. */
export interface State {
  /** By the message's place in its batch; `undefined` while nothing is decided. */
  readonly verdicts: ReadonlyArray<Verdict | undefined>
  /** The first delay given to `retryAll`, in milliseconds. */
  readonly batchDelay: Delay | undefined
}

/** The state before any call, for a batch of this size. */
export const make = (size: number): State => ({
  verdicts: Array.from<undefined>({ length: size }),
  batchDelay: undefined
})

/**
 * The state after one more call. A call that changes nothing is ignored: the same object is returned.
 *
 * @example
 * ```ts
 * import { Acknowledgement } from "@requeue/core"
 *
 * const acked = Acknowledgement.record(Acknowledgement.make(2), { _tag: "Ack", index: 0 })
 * const state = Acknowledgement.record(acked, { _tag: "RetryAll" })
 * Acknowledgement.finalise(state, "success").map(({ _tag }) => _tag) // => ["Ack", "Retry"]
 * ```
 */
export const record = (self: State, call: Call): State => {
  switch (call._tag) {
    case "Ack":
      return self.verdicts[call.index] === undefined ? decided(self, call.index, { _tag: "Ack", by: "message" }) : self
    case "Retry":
      return recordRetry(self, call)
    case "Fail":
      return recordRetry(self, call, { failed: { error: call.error } })
    case "AckAll":
      return fill(self, { _tag: "Ack", by: "batch" })
    case "RetryAll": {
      const filled = fill(self, { _tag: "Retry", by: "batch", delay: undefined, backoff: call.backoff ?? true })
      const wanted = call.delay !== undefined && self.batchDelay === undefined && filled.verdicts.some(isOpen)
      return wanted ? { ...filled, batchDelay: call.delay } : filled
    }
  }
}

const recordRetry = (
  self: State,
  { backoff = true, delay, index }: Extract<Call, { _tag: "Retry" | "Fail" }>,
  how: Pick<Retry, "failed"> = {}
): State => {
  const verdict = self.verdicts[index]
  if (verdict === undefined) return decided(self, index, { _tag: "Retry", by: "message", delay, backoff, ...how })
  return delay !== undefined && isOpen(verdict) ? decided(self, index, { ...verdict, delay }) : self
}

const decided = (self: State, index: number, verdict: Verdict): State => ({
  ...self,
  verdicts: self.verdicts.with(index, verdict)
})

const fill = (self: State, verdict: Verdict): State =>
  self.verdicts.includes(undefined) ? { ...self, verdicts: self.verdicts.map((existing) => existing ?? verdict) } : self

/** Whether an ignored call asked for something else than was decided. A second ack, for example, did not. */
export const contradicts = (self: State, call: Call): boolean => {
  const wanted = call._tag === "Ack" || call._tag === "AckAll" ? "Ack" : "Retry"
  const hasDelay = "delay" in call && call.delay !== undefined
  const reached = "index" in call ? [self.verdicts[call.index]] : self.verdicts
  return hasDelay || reached.some((verdict) => verdict !== undefined && verdict._tag !== wanted)
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

/** The verdict of every message, once the handler has ended. */
export const finalise = (self: State, outcome: Outcome): ReadonlyArray<Verdict> =>
  self.verdicts.map((verdict) => {
    if (verdict === undefined) return byOutcome(outcome)
    return isOpen(verdict) ? { ...verdict, delay: self.batchDelay } : verdict
  })

/** The verdict of a message that no call reached. */
export const byOutcome = (outcome: Outcome): Verdict => outcomes[outcome]

const outcomes: { readonly [K in Outcome]: Verdict } = {
  success: { _tag: "Ack", by: "outcome" },
  failure: { _tag: "Retry", by: "outcome", delay: undefined, backoff: true }
}
