/** Kinds of options, as plain predicates, because a program that only sends must not load `effect/Schema`. */
import { nearest } from "./nearest.ts"
import { withoutPassword } from "./urlPassword.ts"

/** A kind of option values: a check, and texts for errors. */
export interface OptionKind<out A = unknown> {
  /** Describes the values, as the end of a sentence that begins with "must be". */
  readonly expected: string
  /** Whether a value is of this kind. Never called with `undefined`, which counts as left out. */
  readonly holds: (value: unknown) => boolean
  /** How to fix a wrong value: a sentence without its full stop. Default: no remedy. */
  readonly remedy?: ((value: unknown) => string | undefined) | undefined
  /** Converts text of a URL or environment variable, such as digits; keeps other values. Default: no conversion. */
  readonly read?: ((value: unknown) => unknown) | undefined
  /** A value as written in a program. Default: none. */
  readonly example?: string | undefined
  /** For each option that belongs inside this option, a function that writes it as program text. Default: none. */
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

/** The kind of functions. */
export const callback: OptionKind = { expected: "a function", holds: (value) => typeof value === "function" }

/** The kind of booleans. {@link OptionKind.read} also converts the text `true` or `false`. */
export const flag: OptionKind<boolean> = {
  expected: "true or false",
  holds: (value) => typeof value === "boolean",
  read: (value) => (value === "true" ? true : value === "false" ? false : value)
}

/** Converts text of digits to a number; see {@link OptionKind.read}. */
export const readNumber = (value: unknown): unknown =>
  typeof value === "string" && /^-?\d+(\.\d+)?$/.test(value) ? Number(value) : value

/** The kind of text. */
export const text: OptionKind<string> = { expected: "text", holds: (value) => typeof value === "string" }

/** The kind of text with at least one character. */
export const nonEmpty: OptionKind<string> = {
  expected: "text that is not empty",
  holds: (value) => typeof value === "string" && value !== ""
}

/** Makes the kind of text that matches a pattern. `expected` describes the text. */
export const matching = (expected: string, pattern: RegExp): OptionKind<string> => ({
  expected,
  holds: (value) => typeof value === "string" && pattern.test(value)
})

/** The kind of arrays. */
export const list: OptionKind = { expected: "an array", holds: Array.isArray }

/** The kind of `AbortSignal`s. */
export const signal: OptionKind = { expected: "an AbortSignal", holds: (value) => value instanceof AbortSignal }

/** Makes the kind of numbers of at least `min`. */
export const number = (min: number): OptionKind<number> => ({
  expected: `a number >= ${min}`,
  holds: (value) => typeof value === "number" && value >= min,
  read: readNumber
})

/** Makes the kind of whole numbers from `min` to `max`. Default: no upper limit. */
export const whole = (min: number, max = Number.POSITIVE_INFINITY): OptionKind<number> => ({
  expected: `a whole number ${max === Number.POSITIVE_INFINITY ? `>= ${min}` : `from ${min} to ${max}`}`,
  holds: (value) => Number.isSafeInteger(value) && Number(value) >= min && Number(value) <= max,
  read: readNumber
})

/** Makes the kind of values that are one of several words or numbers. */
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

/** Makes the kind of objects with the named members, not lists or functions. `expected` describes the objects. */
export const object = (expected: string, ...members: ReadonlyArray<string>): OptionKind => ({
  expected,
  holds: (value) => isObject(value) && members.every((name) => name in value),
  remedy: (value) => {
    const missing = isObject(value) ? members.filter((name) => !(name in value)) : []
    return missing.length === 0 ? undefined : `The object has no ${missing.join(" and no ")}`
  }
})

/**
 * Makes the kind of object literals: the content of a `Map` or a class instance would be ignored. `expected` describes
 * the objects.
 */
export const plain = (expected: string): OptionKind => ({
  expected,
  holds: isPlain,
  remedy: (value) => {
    if (hasEntries(value)) return remedyOfEntries
    return isObject(value) && !isPlain(value) ? "Copy it into a plain object: { ...value }" : undefined
  }
})

/** Whether a value is a plain object, of this realm or another one. */
export const isPlain = (value: unknown): value is object => {
  if (!isObject(value)) return false
  const prototype: unknown = Object.getPrototypeOf(value)
  if (prototype === Object.prototype || prototype === null) return true
  return isObject(prototype) && Object.getPrototypeOf(prototype) === null && Object.hasOwn(prototype, "hasOwnProperty")
}

/** Whether an object is a promise, which the caller has forgotten to await. */
export const isPromise = (value: object): boolean => typeof Reflect.get(value, "then") === "function"

/** The remedy for an option that is a collection of pairs instead of an object. */
export const remedyOfEntries = "Convert it with Object.fromEntries(…)"

/** Whether a value is a collection of pairs: a `Map`, or `Headers` or `URLSearchParams` of any library. */
export const hasEntries = (value: unknown): boolean =>
  isObject(value) && ["entries", "get"].every((name) => typeof Reflect.get(value, name) === "function")

/** Whether a value is an object, and neither `null` nor a list. */
export const isObject = (value: unknown): value is object =>
  typeof value === "object" && value !== null && !Array.isArray(value)

/** The most characters of a text that an error shows. */
const longest = 40

/**
 * Returns the text for a wrong value in an error. It hides the content of objects, which may be a message or a secret,
 * and does not shorten long texts, because masks for secrets find only whole ones.
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
