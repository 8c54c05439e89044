/**
 * Names of options. A misspelt option is refused, because an ignored limit could lose messages or flood a service.
 *
 * When to use: in a constructor of your own that takes options.
 *
 * @example
 * ```ts
 * import { OptionNames } from "@requeue/core/adapter-kit"
 *
 * OptionNames.remedy("maxRetires", ["maxRetries", "maxAge"]) // => "Did you mean maxRetries?"
 * ```
 */

import * as Predicate from "effect/Predicate"

/** The names of all options of a type. The compiler refuses a value of this type that lacks one. */
export type Of<Options> = { readonly [K in keyof Required<Options>]: true }

/** A value as text for an error, in one line: text in quotes, of objects and functions only the kind. */
export const show = (value: unknown): string => {
  if (typeof value === "string") return JSON.stringify(value)
  if (Array.isArray(value)) return "an array"
  if (typeof value === "object" && value !== null) return "an object"
  return typeof value === "function" ? "a function" : String(value)
}

/**
 * Checks that options are an object, and the names in it, for code that no compiler checks. `where` names the function
 * in the error.
 *
 * @throws RangeError when the options are no object; naming the first unknown option
 */
export const check = <Options extends object>(where: string, options: Options, known: Of<Options>): void => {
  if (!Predicate.isObject(options)) throw new RangeError(`${where}: options must be an object, got ${show(options)}`)
  const unknown = Object.keys(options).find((name) => !Object.hasOwn(known, name))
  if (unknown === undefined) return
  throw new RangeError(`${where}: options must be among ${Object.keys(known).join(", ")}, got ${unknown}`)
}

/** The edit distance of two words: letters that are changed, missing, added, or swapped with their neighbour. */
const distance = (a: string, b: string): number => {
  const rows: Array<Array<number>> = [Array.from({ length: b.length + 1 }, (_, j) => j)]
  for (let i = 1; i <= a.length; i++) {
    const row = [i]
    for (let j = 1; j <= b.length; j++) {
      const changed = rows[i - 1]![j - 1]! + (a[i - 1] === b[j - 1] ? 0 : 1)
      const swapped = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]
      const best = Math.min(changed, rows[i - 1]![j]! + 1, row[j - 1]! + 1)
      row.push(swapped ? Math.min(best, rows[i - 2]![j - 2]! + 1) : best)
    }
    rows.push(row)
  }
  return rows[a.length]![b.length]!
}

/** The known name that is most like this one; `undefined` when none is near. */
export const nearest = (name: string, known: ReadonlyArray<string>): string | undefined => {
  const [best] = known
    .map((candidate) => ({ candidate, far: distance(name.toLowerCase(), candidate.toLowerCase()) }))
    .filter(({ candidate, far }) => far <= Math.max(1, Math.floor(candidate.length / 3)))
    .toSorted((a, b) => a.far - b.far)
  return best?.candidate
}

/** The advice for an unknown name: the nearest known name, or all of them. */
export const remedy = (name: string, known: ReadonlyArray<string>): string => {
  const meant = nearest(name, known)
  return meant === undefined ? `Use one of ${known.join(", ")}` : `Did you mean ${meant}?`
}
