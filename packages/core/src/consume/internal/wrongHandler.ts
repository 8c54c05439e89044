/**
 * A handler of batches that was given to `consume`, or one of messages that was given to `consumeBatch`. TypeScript refuses
 * both. In JavaScript, every message would fail and become a dead letter, or succeed unseen.
 */

const made = new WeakSet<object>()

/** Makes the error of a handler that reads a member that only the other kind of handler gets. Its consumer stops. */
export const make = (got: "message" | "batch", member: string): RangeError => {
  const error = new RangeError(
    got === "message"
      ? `the handler reads message.${member}, but gets one message at a time. Use consumeBatch or startBatch`
      : `the handler reads batch.${member}, but gets batches. Use consume or start, or read batch.messages`
  )
  made.add(error)
  return error
}

/** Whether a handler has thrown such an error. It reads no property of the value, which may be a proxy that throws. */
export const is = (error: unknown): error is RangeError =>
  typeof error === "object" && error !== null && made.has(error)
