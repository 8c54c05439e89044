/** Checks values of AMQP headers, and copies them. Pure. */

/** The deepest nesting of tables. Deeper headers are not realistic and would exhaust the stack. */
const deepest = 32

/** The driver's form of a timestamp, for reading and writing. */
interface Timestamp {
  readonly "!": "timestamp"
  readonly value: number
}

const isTimestamp = (value: object): value is Timestamp =>
  "!" in value &&
  value["!"] === "timestamp" &&
  "value" in value &&
  Number.isSafeInteger(value.value) &&
  Number(value.value) >= 0

const isPlain = (value: object): value is Readonly<Record<string, unknown>> => {
  const prototype: unknown = Object.getPrototypeOf(value)
  return prototype === null || prototype === Object.prototype
}

const values =
  "text, a finite number, true, false, null, a Buffer or other Uint8Array, a Date, or an array or plain object of these"

/** Returns why a value cannot be written, with its place; `undefined` if it can. */
const problemOfValue = (value: unknown, place: string, depth = 0): string | undefined => {
  if (depth > deepest) return `${place} is nested too deep: at most ${deepest} levels`
  if (value === null || ["string", "boolean", "undefined"].includes(typeof value) || value instanceof Uint8Array)
    return undefined
  if (typeof value === "number") return Number.isFinite(value) ? undefined : `${place} must be ${values}, got ${value}`
  if (value instanceof Date)
    return Number.isFinite(value.getTime()) && value.getTime() >= 0
      ? undefined
      : `${place} must be a date since 1970, got ${String(value)}`
  if (Array.isArray(value)) return firstOf(value, (each, at) => problemOfValue(each, `${place}[${at}]`, depth + 1))
  if (typeof value !== "object" || !isPlain(value)) return `${place} must be ${values}, got ${kindOf(value)}`
  if (isTimestamp(value)) return undefined
  if ("!" in value) return `${place} has a member "!", by which the driver names types`
  return problemOf(value, place, depth)
}

/** Returns why a table of headers cannot be written, with the place of the fault; `undefined` if it can. */
export const problemOf = (table: Readonly<Record<string, unknown>>, place: string, depth = 0): string | undefined =>
  firstOf(Object.entries<unknown>(table), ([name, each]) =>
    Buffer.byteLength(name) > 255 || name === "__proto__"
      ? `${place} has an invalid name: names have at most 255 bytes and are not __proto__`
      : problemOfValue(each, `${place}.${name}`, depth + 1)
  )

const firstOf = <A>(
  all: ReadonlyArray<A>,
  problem: (each: A, at: number) => string | undefined
): string | undefined => {
  for (const [at, each] of all.entries()) {
    const found = problem(each, at)
    if (found !== undefined) return found
  }
  return undefined
}

const kindOf = (value: unknown): string =>
  typeof value === "object" && value !== null ? `a ${value.constructor?.name ?? "value"}` : `a ${typeof value}`

/**
 * Copies a value that {@link problemOf} has accepted or that the driver has read. The copy is frozen except for its
 * bytes.
 */
const copyOfValue = (value: unknown, depth = 0): unknown => {
  if (typeof value !== "object" || value === null) return value
  if (depth > deepest) return null
  if (value instanceof Uint8Array) return Buffer.from(value)
  // AMQP timestamps are in seconds.
  if (value instanceof Date) return Object.freeze({ "!": "timestamp", value: Math.floor(value.getTime() / 1000) })
  if (Array.isArray(value)) return Object.freeze(value.map((each) => copyOfValue(each, depth + 1)))
  return copyOf({ ...value }, depth)
}

/** Does the same for a table. */
export const copyOf = (table: Readonly<Record<string, unknown>>, depth = 0): Readonly<Record<string, unknown>> =>
  Object.freeze(
    Object.fromEntries(Object.entries<unknown>(table).map(([name, value]) => [name, copyOfValue(value, depth + 1)]))
  )
