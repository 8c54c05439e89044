/**
 * A handler of batches that was given to `consume`, or one of messages that was given to `consumeBatch`. TypeScript refuses
 * both. In JavaScript, every message would fail and become a dead letter, or succeed unseen.
 */

/** The error that such a handler meets. Its consumer stops, and no message is settled for it. */
export class WrongHandler extends RangeError {
  override readonly name = "RangeError"
  readonly #brand = true
  /** Asks nothing of a value that a handler has thrown: it may be a trap. */
  static is(value: unknown): value is WrongHandler {
    return typeof value === "object" && value !== null && #brand in value
  }
}

/** Makes the error of a handler that reads what only the other kind of handler gets. */
export const make = (read: "message.messages" | "batch.body"): WrongHandler =>
  read === "message.messages"
    ? new WrongHandler(
        "the handler reads message.messages, but gets one message at a time. Use consumeBatch or startBatch"
      )
    : new WrongHandler("the handler reads batch.body, but gets batches. Use consume or start, or read batch.messages")
