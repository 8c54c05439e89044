/** Headers as the driver's `publish` takes them, with less work for each message. */

/** One object for all headers with the same names. */
const reused = new Map<string, Record<string, unknown>>()
const reuseLimit = 100

/**
 * Copies headers into an object that is shared by all headers with the same names. The driver uses its argument as a
 * prototype, and setting up a prototype per message takes longer than encoding the message. The driver has read the
 * headers when `publish` returns.
 */
export const reuse = (headers: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> => {
  const names = JSON.stringify(Object.keys(headers))
  const known = reused.get(names)
  if (known !== undefined) return Object.assign(known, headers)
  if (reused.size < reuseLimit) reused.set(names, { ...headers })
  return headers
}

/** The bytes that the driver writes before a byte array without a name; its size follows. */
const nameless = [0, "x".charCodeAt(0)] as const
const namelessSize = nameless.length + 4

/** One object for all tables, because the driver uses it as a prototype too. */
const wholeTable: Record<string, unknown> = {}

/**
 * Returns headers that make the driver write a whole table unchanged. They are a byte array without a name, and while
 * the driver encodes it, the preceding bytes are overwritten too. If another version of the driver writes something
 * else there, nothing is sent.
 */
export const asItIs = (table: Buffer): Readonly<Record<string, unknown>> => {
  const content = table.subarray(namelessSize)
  const copy: Buffer["copy"] = (target, at = 0) => {
    const start = at - namelessSize
    if (nameless.some((byte, index) => target[start + index] !== byte))
      throw new TypeError("the driver writes byte arrays in another way")
    return table.copy(target, start)
  }
  // V8 puts a function literal that is assigned to a property in the old generation of the heap.
  content.copy = copy
  wholeTable[""] = content
  return wholeTable
}
