/**
 * Assertions for cases. They need no test runner. All throw {@link CheckFailed}, in which a test runner that shows
 * differences finds `actual` and `expected`.
 */
import * as Equal from "effect/Equal"

/** The error of an assertion that does not hold. */
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

/** Describes the difference between two values in a sentence; `undefined` if they are structurally equal. */
export const difference = (what: string, actual: unknown, expected: unknown): string | undefined =>
  Equal.equals(actual, expected) ? undefined : `${what}: expected ${show(expected)}, got ${show(actual)}`

/** Checks that two values are structurally equal. */
export const equal = (what: string, actual: unknown, expected: unknown): void => {
  const found = difference(what, actual, expected)
  if (found !== undefined) throw new CheckFailed(found, actual, expected)
}

/** Checks that a condition holds. The error shows `seen`, if it is given. */
export const isTrue = (what: string, condition: boolean, seen?: unknown): void => {
  if (!condition) throw new CheckFailed(seen === undefined ? what : `${what}; seen: ${show(seen)}`, seen)
}

/** Checks that two arrays have the same bytes. */
export const sameBytes = (what: string, actual: Uint8Array, expected: Uint8Array): void => {
  const at = expected.findIndex((byte, index) => actual[index] !== byte)
  if (actual.length === expected.length && at === -1) return
  throw new CheckFailed(
    `${what}: ${actual.length} bytes for ${expected.length}, first difference at ${at === -1 ? expected.length : at}`
  )
}

/** Checks that a value is not `undefined`, and returns it. */
export const present = <A>(what: string, value: A | undefined): A => {
  if (value === undefined) throw new CheckFailed(`${what}: missing`)
  return value
}
