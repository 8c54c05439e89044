/** Kinds of options, as plain predicates, because a program that only sends must not load `effect/Schema`. */
import { nearest } from "./nearest.ts"
import { withoutPassword } from "./urlPassword.ts"

/** A kind of value. */
export interface OptionKind<out A = unknown> {
  /** Describes the values; completes "must be". */
  readonly expected: string
  /** Whether a value is of this kind. Never called with `undefined`, which counts as left out. */
  readonly holds: (value: unknown) => boolean
  /** How to fix a wrong value: a sentence without its full stop. Default: no remedy. */
  readonly remedy?: ((value: unknown) => string | undefined) | undefined
  /** Converts text of a URL or environment variable, such as digits; keeps other values. Default: no conversion. */
  readonly read?: ((value: unknown) => unknown) | undefined
  /** A value as written in a program. Default: none. */
  readonly example?: string | undefined
  /** How a program writes options that belong inside this one, by name. Default: none. */
  readonly inside?: Readonly<Record<string, (value: string) => string>> | undefined
  /** Whether a value given in place of all options was meant for this one. Default: `holds`. */
  readonly fits?: ((value: unknown) => boolean) | undefined
  /** The kinds of members by name, so an error can name the wrong one; `undefined` if not a container. Default: none. */
  readonly members?: ((value: unknown) => Readonly<Record<string, OptionKind>> | undefined) | undefined
  /** The type of the values, for the compiler only: it is never set. */
  readonly Type?: A | undefined
}

/** The type of the values of a kind. */
export type Value<Kind> = Kind extends OptionKind<infer A> ? A : never

/** A function. */
export const callback: OptionKind = { expected: "a function", holds: (value) => typeof value === "function" }

/** A boolean; also the text `true` or `false` in {@link OptionKind.read}. */
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

/** Text that matches a pattern. `expected` describes it. */
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

/** A whole number from `min` to `max`. Default: no upper limit. */
export const whole = (min: number, max = Number.POSITIVE_INFINITY): OptionKind<number> => ({
  expected: `a whole number ${max === Number.POSITIVE_INFINITY ? `>= ${min}` : `from ${min} to ${max}`}`,
  holds: (value) => Number.isSafeInteger(value) && Number(value) >= min && Number(value) <= max,
  read: readNumber
})

/** One of several words or numbers. */
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

/** An object, not a list or function, with the named members. `expected` describes it. */
export const object = (expected: string, ...members: ReadonlyArray<string>): OptionKind => ({
  expected,
  holds: (value) => isObject(value) && members.every((name) => name in value),
  remedy: (value) => {
    const missing = isObject(value) ? members.filter((name) => !(name in value)) : []
    return missing.length === 0 ? undefined : `The object has no ${missing.join(" and no ")}`
  }
})

/** An object literal, not a `Map` or a class instance, whose content would be ignored. `expected` describes it. */
export const plain = (expected: string): OptionKind => ({
  expected,
  holds: isPlain,
  remedy: (value) => {
    if (hasEntries(value)) return remedyOfEntries
    return isObject(value) && !isPlain(value) ? "Copy it into a plain object: { ...value }" : undefined
  }
})

/** Whether a value is a plain object; another realm's `Object.prototype` counts. */
export const isPlain = (value: unknown): value is object => {
  if (!isObject(value)) return false
  const prototype: unknown = Object.getPrototypeOf(value)
  if (prototype === Object.prototype || prototype === null) return true
  return isObject(prototype) && Object.getPrototypeOf(prototype) === null && Object.hasOwn(prototype, "hasOwnProperty")
}

/** Whether it is a promise that the caller forgot to await. */
export const isPromise = (value: object): boolean => typeof Reflect.get(value, "then") === "function"

/** The remedy for a collection of pairs. */
export const remedyOfEntries = "Convert it with Object.fromEntries(…)"

/** Whether it is a collection of pairs: a `Map`, or `Headers` or `URLSearchParams` of any library. */
export const hasEntries = (value: unknown): boolean =>
  isObject(value) && ["entries", "get"].every((name) => typeof Reflect.get(value, name) === "function")

/** Whether a value is an object, and neither `null` nor a list. */
export const isObject = (value: unknown): value is object =>
  typeof value === "object" && value !== null && !Array.isArray(value)

/** The most characters of a text that an error shows. */
const longest = 40

/**
 * Shows a given value in an error. It hides the content of objects, which may be a message or a secret, and does not
 * shorten long texts, because masks for secrets find only whole ones.
 */
export const show = (value: unknown): string => {
  if (value === undefined || value === null) return String(value)
  if (typeof value === "string")
    return value.length > longest ? `a text of ${value.length} characters` : JSON.stringify(withoutPassword(value))
  if (typeof value === "number" || typeof value === "boolean") return String(value)
  if (typeof value === "bigint") return `${value}n`
  if (typeof value !== "object") return `a ${typeof value}`
  return Array.isArray(value) ? "an array" : formOf(value)
}

/** Names the form of an object; "an object" for a proxy that throws. */
const formOf = (value: object): string => {
  try {
    if (isPromise(value)) return "a promise"
    if (!hasEntries(value)) return isPlain(value) ? "an object" : "an instance of a class"
    const [, tag] = /^\[object (\w{1,40})\]$/.exec(Object.prototype.toString.call(value)) ?? []
    return tag === undefined || tag === "Object" ? "a collection of entries" : `a ${tag}`
  } catch {
    return "an object"
  }
}
