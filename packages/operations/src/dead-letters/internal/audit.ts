/** Audits letters before they leave their queue. */
import { type Delivery, Failure } from "@requeue/core"
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import { type DeadLetter, fromDelivery } from "./deadLetter.ts"

/**
 * A function that gets letters before they leave their queue, up to 100 at a time. The letters leave after it has returned,
 * or its promise has resolved. If it fails, these letters and all later ones stay.
 */
export type Audit = (letters: ReadonlyArray<DeadLetter>) => void | Promise<void>

/** The error of an audit, which ends a redrive, a purge or an edit. */
export class AuditFailed extends Data.TaggedError("AuditFailed")<{
  readonly queue: string
  readonly detail: string
}> {
  readonly reason = "AuditFailed"
  /** Whether another call may succeed: it continues with the letters that have stayed. */
  readonly isRetryable = true
  override get message() {
    return `audit of ${this.queue}: ${this.detail}. The letters that it did not record stay`
  }
}

/** Gives letters to the audit, and succeeds after the audit has recorded them. */
export type Admit = (letters: ReadonlyArray<Delivery.Delivery>) => Effect.Effect<void, AuditFailed>

/** Returns a function that gives letters to the audit, if there is one. */
export const make =
  (queue: string, audit: Audit | undefined): Admit =>
  (letters) =>
    audit === undefined || letters.length === 0
      ? Effect.void
      : Effect.tryPromise({
          try: () => Promise.resolve(audit(letters.map(fromDelivery))),
          catch: (error) => new AuditFailed({ queue, detail: Failure.summarize(error).message })
        })
