/**
 * Detects a batch handler passed to `consume`, or a message handler passed to `consumeBatch`. TypeScript rejects both. In
 * JavaScript, every message would fail and be dead-lettered, or be acked without work.
 */

const made = new WeakSet<object>()

type Got = "message" | "batch"

const refuse = (message: string): RangeError => {
  const error = new RangeError(message)
  made.add(error)
  return error
}

/** Makes the error of a handler that reads a member that only the other kind of handler gets. Its consumer stops. */
export const make = (got: Got, member: string): RangeError =>
  refuse(
    got === "message"
      ? `the handler reads message.${member}, but gets one message at a time. Use consumeBatch or startBatch`
      : `the handler reads batch.${member}, but gets batches. Use consume or start, or read batch.messages`
  )

/** Makes the error of a handler that takes a message or a batch for an array. `use` is how it did. */
const ofArray = (got: Got, use: string): RangeError =>
  refuse(
    got === "message"
      ? `the handler uses message${use}, but gets one message, not an array. Read message.body, or use consumeBatch or startBatch`
      : `the handler uses batch${use}, but gets an object, not an array. Write batch.messages${use}`
  )

/**
 * Adds traps for every member of arrays to a prototype, so messages cost nothing. The traps of methods throw when they are
 * called: libraries and `console.log` look for `Symbol.iterator`.
 */
export const trapArrayUse = (prototype: object, got: Got): void => {
  for (const name of ["length", "0"]) {
    const use = name === "0" ? "[0]" : `.${name}`
    Object.defineProperty(prototype, name, {
      configurable: true,
      get: () => {
        throw ofArray(got, use)
      }
    })
  }
  for (const name of Reflect.ownKeys(Array.prototype)) {
    if (name in prototype || name === Symbol.unscopables) continue
    const use = typeof name === "symbol" ? "[Symbol.iterator]()" : `.${name}()`
    Object.defineProperty(prototype, name, {
      configurable: true,
      writable: true,
      value: () => {
        throw ofArray(got, use)
      }
    })
  }
}

/** Whether a value is such an error. It reads no property of the value, which may be a proxy that throws. */
export const is = (error: unknown): error is RangeError =>
  typeof error === "object" && error !== null && made.has(error)
