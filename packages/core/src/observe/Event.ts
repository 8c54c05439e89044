/**
 * Events report what happens to a message, as typed data for audit, metrics and tests.
 *
 * The end of a delivery is reported when the broker has accepted its settlement, so the counts add up: received =
 * succeeded + retried + dead-lettered + dropped + released + in progress. A delivery that is lost with its connection
 * or its lease has no final event; its message is received again.
 */
import type { Delay } from "../message/Delay.ts"
import type { ErrorSummary, Reason } from "../message/Metadata.ts"
import type { Settlement } from "../message/Settlement.ts"

/** The delivery that an event is about. */
export interface Subject {
  readonly queue: string
  /** The message's id. */
  readonly id: string
  /** How often the message was delivered, this time included. */
  readonly attempts: number
  /** The redrive of the message, by the name in its report. Left out if the message was not redriven. */
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
   * The broker did not accept a settlement. If the delivery was lost, its message is received again; otherwise the
   * settlement is repeated. If only the broker's answer was lost, the dead letter or the copy of a retry may exist
   * twice. If the broker does not confirm settlements, this event may follow an event such as `Succeeded` or
   * `RetryScheduled`, whose settlement then did not happen.
   */
  | (Subject & { readonly _tag: "SettleFailed"; readonly settlement: Settlement["_tag"]; readonly error: Error })
  /**
   * The broker refuses every way to settle this message, also the smallest copy. The consumer keeps the message, runs
   * no handler for it, and repeats the settlement: first after 1 second, later every 60 seconds. An event such as
   * `DeadLettered` follows when the settlement succeeds.
   */
  | (Subject & { readonly _tag: "Quarantined"; readonly settlement: Settlement["_tag"]; readonly error: Error })
  /** The broker refused to extend the lease of a message. It may deliver the message to another consumer. */
  | (Subject & { readonly _tag: "LeaseLost"; readonly error: Error })
  /** A call that was ignored, because the message was already settled. */
  | (Subject & { readonly _tag: "CallIgnored"; readonly call: string })
  | {
      readonly _tag: "BackoffEntered"
      readonly queue: string
      /** `handler`: handlers fail. `broker`: the broker does not take retries or dead letters. */
      readonly because: "handler" | "broker"
      /** The level of the backoff. Each level doubles the pause. */
      readonly level: number
      /** The length of the pause, in milliseconds. */
      readonly wait: number
    }
  | { readonly _tag: "BackoffLeft"; readonly queue: string; readonly because: "handler" | "broker" }

/** A function that is called with each event, synchronously. If it throws or rejects, the error is logged and ignored. */
export type Hook = (event: Event) => void
