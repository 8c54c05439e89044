/**
 * Events: the life of a message as typed events, for audit, metrics and tests.
 *
 * The end of a delivery is reported once the broker has taken its settlement, so the counts add up: received =
 * succeeded + retried + dead-lettered + dropped + released + in progress. A delivery that is lost with its connection or
 * its lease has no final event; its message is received again.
 */
import type { Delay } from "../message/Delay.ts"
import type { ErrorSummary, Reason } from "../message/Metadata.ts"
import type { Settlement } from "../message/Settlement.ts"

/** The delivery that an event is about. */
export interface Subject {
  readonly queue: string
  /** The message's id. */
  readonly id: string
  /** Deliveries of the message so far, this one included. */
  readonly attempts: number
  /** The operation that redrove the message, as its report names it. Left out for one that was not redriven. */
  readonly operation?: string
}

/** An event of a delivery, or of a consumer's backoff. Delays are in milliseconds. */
export type Event =
  | (Subject & { readonly _tag: "Received" })
  /** A handler run failed. `willRerun`: the handler runs again in the same delivery. */
  | (Subject & { readonly _tag: "AttemptFailed"; readonly error: ErrorSummary; readonly willRerun: boolean })
  /** Acked. `inTransaction`: by a transaction that was committed. Left out for any other ack. */
  | (Subject & { readonly _tag: "Succeeded"; readonly inTransaction?: true })
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
   * The broker did not accept a settlement. If the delivery was lost, its message is received again; else the settlement is
   * repeated. If only the broker's answer was lost, the dead letter, or the copy of a retry, may exist twice. A broker that
   * confirms no settlements may report this failure after the settlement's own event, which then did not happen.
   */
  | (Subject & { readonly _tag: "SettleFailed"; readonly settlement: Settlement["_tag"]; readonly error: Error })
  /**
   * The broker refuses every way to settle this message, also the smallest copy. The consumer keeps it and runs no handler
   * for it, or returns it to the queue without a delay if the broker refuses only that. It tries again after 1 second, later
   * every 60. The settlement's own event follows when it succeeds.
   */
  | (Subject & { readonly _tag: "Quarantined"; readonly settlement: Settlement["_tag"]; readonly error: Error })
  /** A lease could not be extended: the broker may deliver the message to another consumer. */
  | (Subject & { readonly _tag: "LeaseLost"; readonly error: Error })
  /** A call that was ignored, because the message was already settled. */
  | (Subject & { readonly _tag: "CallIgnored"; readonly call: string })
  | {
      readonly _tag: "BackoffEntered"
      readonly queue: string
      /** `handler`: handlers fail. `broker`: the broker does not take retries or dead letters. */
      readonly because: "handler" | "broker"
      /** How far the pauses have grown. */
      readonly level: number
      /** The length of the pause, in milliseconds. */
      readonly wait: number
    }
  | { readonly _tag: "BackoffLeft"; readonly queue: string; readonly because: "handler" | "broker" }

/** A function that is called with each event, synchronously. If it throws or rejects, the error is logged and ignored. */
export type Hook = (event: Event) => void
