/** Values of AMQP's headers: which of them can be written, and copies that nobody else holds. Pure. */

/** Levels of tables in tables. A header that is deeper is no header of anybody's, and would exhaust the stack. */
const deepest = 32

/** The driver's own form of a timestamp, which it reads and writes. */
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

/** Why a value cannot be written, with its place; `undefined` when it can. */
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

/** Why a table of headers cannot be written, with the place of what is wrong; `undefined` when it can. */
export const problemOf = (table: Readonly<Record<string, unknown>>, place: string, depth = 0): string | undefined =>
  firstOf(Object.entries<unknown>(table), ([name, each]) =>
    Buffer.byteLength(name) > 255 || name === "__proto__"
      ? `${place} has a name that is none: at most 255 bytes, and not __proto__`
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

/** A copy of a value that {@link problemOf} has passed, or that the driver has read; frozen but for its bytes. */
const copyOfValue = (value: unknown, depth = 0): unknown => {
  if (typeof value !== "object" || value === null) return value
  if (depth > deepest) return null
  if (value instanceof Uint8Array) return Buffer.from(value)
  // AMQP's timestamps are in seconds.
  if (value instanceof Date) return Object.freeze({ "!": "timestamp", value: Math.floor(value.getTime() / 1000) })
  if (Array.isArray(value)) return Object.freeze(value.map((each) => copyOfValue(each, depth + 1)))
  return copyOf({ ...value }, depth)
}

/** The same for a table. */
export const copyOf = (table: Readonly<Record<string, unknown>>, depth = 0): Readonly<Record<string, unknown>> =>
  Object.freeze(
    Object.fromEntries(Object.entries<unknown>(table).map(([name, value]) => [name, copyOfValue(value, depth + 1)]))
  )
