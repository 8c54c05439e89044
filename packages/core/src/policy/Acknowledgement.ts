/**
 * Who decides what happens to a message of a batch, when the handler says several things.
 *
 * Every message has one verdict, set by the first call that reaches it; `ackAll` and `retryAll` are that call for every
 * message that has none yet. What is still without a verdict when the handler ends takes its outcome. The delay of a
 * retried message is chosen apart from the verdict: the first one given on the message itself, else the first one given
 * to `retryAll`, else the policy's.
 *
 * The rule is one pure reducer over calls, {@link record}, and one pure function, {@link finalise}.
 */
import type { Delay } from "../message/Delay.ts"

/** One call of the handler. `index` is the message's place in its batch; delays are in milliseconds. */
export type Call =
  | { readonly _tag: "Ack"; readonly index: number }
  | { readonly _tag: "Retry"; readonly index: number; readonly delay?: Delay | undefined; readonly backoff?: boolean }
  | { readonly _tag: "AckAll" }
  | { readonly _tag: "RetryAll"; readonly delay?: Delay | undefined; readonly backoff?: boolean }

/** How the handler ended. */
export type Outcome = "success" | "failure"

/** What was decided for a message, and by whom. */
export type Verdict =
  | { readonly _tag: "Ack"; readonly by: "message" | "batch" | "outcome" }
  | {
      readonly _tag: "Retry"
      readonly by: "message" | "batch" | "outcome"
      readonly delay: Delay | undefined
      /** False when the retry is not to count towards consumer backoff. */
      readonly backoff: boolean
    }

/** The calls so far, reduced. */
export interface Record {
  readonly verdicts: ReadonlyArray<Verdict | undefined>
  /** The first delay given to `retryAll`. */
  readonly batchDelay: Delay | undefined
}

/** No calls yet, for a batch of this size. */
export const make = (size: number): Record => ({
  verdicts: Array.from<undefined>({ length: size }),
  batchDelay: undefined
})

/**
 * The record after one more call. The same object comes back when the call changed nothing: it was ignored.
 */
export const record = (self: Record, call: Call): Record => {
  switch (call._tag) {
    case "Ack":
      return self.verdicts[call.index] === undefined ? decided(self, call.index, { _tag: "Ack", by: "message" }) : self
    case "Retry":
      return recordRetry(self, call.index, call.delay, call.backoff ?? true)
    case "AckAll":
      return fill(self, { _tag: "Ack", by: "batch" })
    case "RetryAll": {
      const filled = fill(self, { _tag: "Retry", by: "batch", delay: undefined, backoff: call.backoff ?? true })
      const wanted = call.delay !== undefined && self.batchDelay === undefined && filled.verdicts.some(isOpen)
      return wanted ? { ...filled, batchDelay: call.delay } : filled
    }
  }
}

const recordRetry = (self: Record, index: number, delay: Delay | undefined, backoff: boolean): Record => {
  const verdict = self.verdicts[index]
  if (verdict === undefined) return decided(self, index, { _tag: "Retry", by: "message", delay, backoff })
  return delay !== undefined && isOpen(verdict) ? decided(self, index, { ...verdict, delay }) : self
}

const decided = (self: Record, index: number, verdict: Verdict): Record => ({
  ...self,
  verdicts: self.verdicts.with(index, verdict)
})

const fill = (self: Record, verdict: Verdict): Record =>
  self.verdicts.includes(undefined) ? { ...self, verdicts: self.verdicts.map((existing) => existing ?? verdict) } : self

/** True when a call that changed nothing asked for something else than what was decided: an ack twice asks for nothing new. */
export const contradicts = (self: Record, call: Call): boolean => {
  const wanted = call._tag === "Ack" || call._tag === "AckAll" ? "Ack" : "Retry"
  const hasDelay = "delay" in call && call.delay !== undefined
  const reached = "index" in call ? [self.verdicts[call.index]] : self.verdicts
  return hasDelay || reached.some((verdict) => verdict !== undefined && verdict._tag !== wanted)
}

type Retry = Extract<Verdict, { _tag: "Retry" }>

/** A retry whose delay may still be given. */
const isOpen = (verdict: Verdict | undefined): verdict is Retry =>
  verdict?._tag === "Retry" && verdict.delay === undefined

/**
 * True when nothing that the handler may still do changes this message's settlement, so that it need not wait for the
 * rest of its batch: an ack, or a retry with a delay of its own.
 */
export const isFinal = (verdict: Verdict | undefined): verdict is Verdict => verdict !== undefined && !isOpen(verdict)

/** The verdict of every message, once the handler has ended. */
export const finalise = (self: Record, outcome: Outcome): ReadonlyArray<Verdict> =>
  self.verdicts.map((verdict) => {
    if (verdict === undefined) return byOutcome(outcome)
    return isOpen(verdict) ? { ...verdict, delay: self.batchDelay } : verdict
  })

/** The verdict of a message of which the handler said nothing. */
export const byOutcome = (outcome: Outcome): Verdict => outcomes[outcome]

const outcomes: { readonly [K in Outcome]: Verdict } = {
  success: { _tag: "Ack", by: "outcome" },
  failure: { _tag: "Retry", by: "outcome", delay: undefined, backoff: true }
}
