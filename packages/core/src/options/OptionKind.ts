/**
 * Kinds of options: what a value must be, how to tell, and how to write it. Plain predicates, because a program that only
 * sends must not load `effect/Schema`.
 */
import { nearest } from "./nearest.ts"
import { withoutPassword } from "./urlPassword.ts"

/** A kind of value. */
export interface OptionKind<out A = unknown> {
  /** A description of the values; completes "must be". */
  readonly expected: string
  /** Whether a value is of this kind. It is not asked about `undefined`, which counts as left out. */
  readonly holds: (value: unknown) => boolean
  /** How to mend a value that is not of this kind, as a sentence without its full stop. Default: nothing is said. */
  readonly remedy?: ((value: unknown) => string | undefined) | undefined
  /**
   * Converts text from a URL or an environment variable, such as digits, to a value of this kind. Returns everything else
   * unchanged. Default: converts nothing.
   */
  readonly read?: ((value: unknown) => unknown) | undefined
  /** A value as it is written in a program. Default: none. */
  readonly example?: string | undefined
  /**
   * The kinds of a value's members by name, so that an error can tell which one is wrong; others are unknown. `undefined`
   * for a value that is no container. Default: none.
   */
  readonly members?: ((value: unknown) => Readonly<Record<string, OptionKind>> | undefined) | undefined
  /** The type of the values, which the compiler alone reads: there is never such a value. */
  readonly Type?: A | undefined
}

/** The type of the values of a kind. */
export type Value<Kind> = Kind extends OptionKind<infer A> ? A : never

/** A function. */
export const callback: OptionKind = { expected: "a function", holds: (value) => typeof value === "function" }

/** `true` or `false`. */
export const flag: OptionKind<boolean> = {
  expected: "true or false",
  holds: (value) => typeof value === "boolean",
  read: (value) => (value === "true" ? true : value === "false" ? false : value)
}

/** Converts text of digits to a number; see {@link OptionKind.read}. */
export const readNumber = (value: unknown): unknown =>
  typeof value === "string" && /^-?\d+(\.\d+)?$/.test(value) ? Number(value) : value

/** Text. */
export const text: OptionKind<string> = { expected: "text", holds: (value) => typeof value === "string" }

/** Text of at least one character. */
export const nonEmpty: OptionKind<string> = {
  expected: "text that is not empty",
  holds: (value) => typeof value === "string" && value !== ""
}

/** Text that matches a pattern. `expected` says what it is. */
export const matching = (expected: string, pattern: RegExp): OptionKind<string> => ({
  expected,
  holds: (value) => typeof value === "string" && pattern.test(value)
})

/** A list. */
export const list: OptionKind = { expected: "an array", holds: Array.isArray }

/** An `AbortSignal`. */
export const signal: OptionKind = { expected: "an AbortSignal", holds: (value) => value instanceof AbortSignal }

/** A number of at least `min`. */
export const number = (min: number): OptionKind<number> => ({
  expected: `a number >= ${min}`,
  holds: (value) => typeof value === "number" && value >= min,
  read: readNumber
})

/** A whole number from `min` to `max`. Default: of any size. */
export const whole = (min: number, max = Number.POSITIVE_INFINITY): OptionKind<number> => ({
  expected: `a whole number ${max === Number.POSITIVE_INFINITY ? `>= ${min}` : `from ${min} to ${max}`}`,
  holds: (value) => Number.isSafeInteger(value) && Number(value) >= min && Number(value) <= max,
  read: readNumber
})

/** One of some words, or of some numbers. */
export const oneOf = <const Word extends string | number>(words: ReadonlyArray<Word>): OptionKind<Word> => ({
  expected: `one of ${words.map((word) => JSON.stringify(word)).join(", ")}`,
  holds: (value) => words.some((word) => word === value),
  read: (value) => words.find((word) => String(word) === value) ?? value,
  remedy: (value) => {
    const meant =
      typeof value === "string"
        ? nearest(
            value,
            words.filter((word) => typeof word === "string")
          )
        : undefined
    return meant === undefined ? undefined : `Did you mean ${JSON.stringify(meant)}?`
  }
})

/** An object that is no list and no function. It has these members, where some are named. `expected` says what it is. */
export const object = (expected: string, ...members: ReadonlyArray<string>): OptionKind => ({
  expected,
  holds: (value) => isObject(value) && members.every((name) => name in value)
})

/**
 * An object whose own properties are all that it has, such as a literal: no `Map`, and nothing that a class has made. Of
 * those, the content would be passed over unseen. `expected` says what it is.
 */
export const plain = (expected: string): OptionKind => ({
  expected,
  holds: isPlain,
  remedy: (value) => (hasEntries(value) ? remedyOfEntries : undefined)
})

/** Whether a value is an object without a prototype of its own. Another realm's `Object.prototype` is no other one. */
export const isPlain = (value: unknown): value is object => {
  if (!isObject(value)) return false
  const prototype: unknown = Object.getPrototypeOf(value)
  if (prototype === Object.prototype || prototype === null) return true
  return isObject(prototype) && Object.getPrototypeOf(prototype) === null && Object.hasOwn(prototype, "hasOwnProperty")
}

/** Whether it is a promise, which the caller has not awaited. */
export const isPromise = (value: object): boolean => typeof Reflect.get(value, "then") === "function"

/** The remedy for a collection of pairs. */
export const remedyOfEntries = "Object.fromEntries(…) makes one of it"

/** Whether it is a collection of pairs: a `Map`, or `Headers` or `URLSearchParams` of any library. */
export const hasEntries = (value: unknown): boolean =>
  isObject(value) && ["entries", "get"].every((name) => typeof Reflect.get(value, name) === "function")

/** Whether a value is an object, and neither `null` nor a list. */
export const isObject = (value: unknown): value is object =>
  typeof value === "object" && value !== null && !Array.isArray(value)

/** The longest text that an error shows, in characters. */
const longest = 40

/**
 * A value that was given, for an error. The content of objects is not shown: it may be a message, or a secret. Nor is a part
 * of a long text, because what masks secrets in an error finds whole ones only.
 */
export const show = (value: unknown): string => {
  if (value === undefined || value === null) return String(value)
  if (typeof value === "string")
    return value.length > longest ? `a text of ${value.length} characters` : JSON.stringify(withoutPassword(value))
  if (typeof value === "number" || typeof value === "boolean") return String(value)
  return Array.isArray(value) ? "an array" : typeof value === "object" ? "an object" : `a ${typeof value}`
}
