/** Audits letters before they leave their queue. */
import { type Delivery, Failure } from "@requeue/core"
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import { type DeadLetter, fromDelivery } from "./deadLetter.ts"

/**
 * Called with letters that are about to leave, up to 100 at a time. They leave when it has returned, or when its promise has
 * resolved. If it fails, they and all others stay.
 */
export type Audit = (letters: ReadonlyArray<DeadLetter>) => void | Promise<void>

/** The error of an audit, which ends a redrive, a purge or an edit. */
export class AuditFailed extends Data.TaggedError("AuditFailed")<{
  readonly queue: string
  readonly detail: string
}> {
  readonly reason = "AuditFailed"
  /** The other letters stay, and another call goes on with them. */
  readonly isRetryable = true
  override get message() {
    return `audit of ${this.queue}: ${this.detail}. The letters that it did not record stay`
  }
}

/** Succeeds when the audit has the letters. */
export type Admit = (letters: ReadonlyArray<Delivery.Delivery>) => Effect.Effect<void, AuditFailed>

/** Calls the audit with letters, if there is one. */
export const make =
  (queue: string, audit: Audit | undefined): Admit =>
  (letters) =>
    audit === undefined || letters.length === 0
      ? Effect.void
      : Effect.tryPromise({
          try: () => Promise.resolve(audit(letters.map(fromDelivery))),
          catch: (error) => new AuditFailed({ queue, detail: Failure.summarize(error).message })
        })
