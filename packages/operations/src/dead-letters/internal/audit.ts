/** Tells of letters before they leave their queue, so that it is written down by then who does it. */
import { type Delivery, Failure } from "@requeue/core"
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import { type DeadLetter, fromDelivery } from "./deadLetter.ts"

/**
 * Takes letters that are about to leave, up to 100 at a time. They leave when it has returned, or when its promise has
 * resolved; where it fails, they stay, and so do all others.
 */
export type Audit = (letters: ReadonlyArray<DeadLetter>) => void | Promise<void>

/** The error of an audit, which ends a redrive, a purge or an edit. */
export class AuditFailed extends Data.TaggedError("AuditFailed")<{
  readonly queue: string
  readonly detail: string
}> {
  readonly reason = "AuditFailed"
  /** The letters of which it was not told stay, and another call goes on with them. */
  readonly isRetryable = true
  override get message() {
    return `audit of ${this.queue}: ${this.detail}. The letters of which it was not told stay`
  }
}

/** Succeeds when the audit was told of the letters. */
export type Admit = (letters: ReadonlyArray<Delivery.Delivery>) => Effect.Effect<void, AuditFailed>

/** Tells an audit of letters, if there is one. */
export const make =
  (queue: string, audit: Audit | undefined): Admit =>
  (letters) =>
    audit === undefined || letters.length === 0
      ? Effect.void
      : Effect.tryPromise({
          try: () => Promise.resolve(audit(letters.map(fromDelivery))),
          catch: (error) => new AuditFailed({ queue, detail: Failure.summarize(error).message })
        })
