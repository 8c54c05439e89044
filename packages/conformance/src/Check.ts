/** What cases assert with. No test runner is needed; runners that show differences find `actual` and `expected`. */
import * as Equal from "effect/Equal"

/** A case's promise that the broker did not keep. */
export class CheckFailed extends Error {
  override readonly name = "CheckFailed"
  readonly actual: unknown
  readonly expected: unknown
  constructor(message: string, actual?: unknown, expected?: unknown) {
    super(message)
    this.actual = actual
    this.expected = expected
  }
}

const show = (value: unknown): string => {
  const text =
    JSON.stringify(value, (_, part: unknown) => (typeof part === "bigint" ? String(part) : part)) ?? "undefined"
  return text.length > 500 ? `${text.slice(0, 500)}…` : text
}

/** What is not as it should be, in words; `undefined` where nothing is, by structural equality. */
export const difference = (what: string, actual: unknown, expected: unknown): string | undefined =>
  Equal.equals(actual, expected) ? undefined : `${what}: expected ${show(expected)}, got ${show(actual)}`

/** Structural equality. */
export const equal = (what: string, actual: unknown, expected: unknown): void => {
  const found = difference(what, actual, expected)
  if (found !== undefined) throw new CheckFailed(found, actual, expected)
}

export const isTrue = (what: string, condition: boolean, seen?: unknown): void => {
  if (!condition) throw new CheckFailed(seen === undefined ? what : `${what}; seen: ${show(seen)}`, seen)
}

/** The same bytes. */
export const sameBytes = (what: string, actual: Uint8Array, expected: Uint8Array): void => {
  const at = expected.findIndex((byte, index) => actual[index] !== byte)
  if (actual.length === expected.length && at === -1) return
  throw new CheckFailed(
    `${what}: ${actual.length} bytes for ${expected.length}, first difference at ${at === -1 ? expected.length : at}`
  )
}

/** The value, which must be there. */
export const present = <A>(what: string, value: A | undefined): A => {
  if (value === undefined) throw new CheckFailed(`${what}: missing`)
  return value
}
