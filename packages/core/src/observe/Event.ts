/**
 * A message's life, as typed events: one hook for audit, metrics and tests.
 *
 * What happened to a delivery is told after the broker has taken the settlement, so that counting events balances the
 * books: received = succeeded + retried + dead-lettered + dropped + released + still in progress. A delivery that was lost
 * with its connection or its lease has no end here: its message is received again.
 */
import type { Delay } from "../message/Delay.ts"
import type { ErrorSummary, Reason } from "../message/Metadata.ts"
import type { Settlement } from "../message/Settlement.ts"

/** Which delivery an event is about. */
export interface Subject {
  readonly queue: string
  readonly id: string
  readonly attempts: number
}

export type Event =
  | (Subject & { readonly _tag: "Received" })
  /** A handler run failed; `willRerun` when an in-process retry of the same delivery follows. */
  | (Subject & { readonly _tag: "AttemptFailed"; readonly error: ErrorSummary; readonly willRerun: boolean })
  | (Subject & { readonly _tag: "Succeeded" })
  | (Subject & { readonly _tag: "RetryScheduled"; readonly delay: Delay; readonly error: ErrorSummary | undefined })
  | (Subject & {
      readonly _tag: "DeadLettered"
      readonly reason: Reason
      readonly target: string
      readonly error: ErrorSummary
    })
  | (Subject & { readonly _tag: "Dropped"; readonly reason: Reason | "dropped"; readonly error: ErrorSummary })
  | (Subject & { readonly _tag: "Released"; readonly delay: Delay })
  /**
   * The broker did not take a settlement; the message comes back. Unless it was lost, a `Released` tells when. Where only
   * the broker's answer was lost, a dead letter, or the copy of a retry, may be there all the same.
   */
  | (Subject & { readonly _tag: "SettleFailed"; readonly settlement: Settlement["_tag"]; readonly error: Error })
  /** A lease could not be extended: the broker may hand the message to somebody else. */
  | (Subject & { readonly _tag: "LeaseLost"; readonly error: Error })
  /** A call that came too late to change anything. */
  | (Subject & { readonly _tag: "CallIgnored"; readonly call: string })
  | {
      readonly _tag: "BackoffEntered"
      readonly queue: string
      /** `handler`: handlers fail. `broker`: the broker does not take retries or dead letters. */
      readonly because: "handler" | "broker"
      readonly level: number
      /** Milliseconds. */
      readonly wait: number
    }
  | { readonly _tag: "BackoffLeft"; readonly queue: string; readonly because: "handler" | "broker" }

/** Called synchronously and not waited for; what it throws, or rejects with, is logged and ignored. */
export type Hook = (event: Event) => void
