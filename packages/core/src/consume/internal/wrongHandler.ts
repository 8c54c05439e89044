/**
 * Detects a batch handler passed to `consume`, or a message handler passed to `consumeBatch`. TypeScript rejects both. In
 * JavaScript, every message would fail and be dead-lettered, or be acked without work.
 */

const made = new WeakSet<object>()

/** Returns the error of a handler that reads a member of the other kind of argument. It stops the consumer. */
export const make = (got: "message" | "batch", member: string): RangeError => {
  const error = new RangeError(
    got === "message"
      ? `the handler reads message.${member}, but gets one message at a time. Use consumeBatch or startBatch`
      : `the handler reads batch.${member}, but gets batches. Use consume or start, or read batch.messages`
  )
  made.add(error)
  return error
}

/** Whether a value is such an error. It reads no property of the value, which may be a proxy that throws. */
export const is = (error: unknown): error is RangeError =>
  typeof error === "object" && error !== null && made.has(error)
