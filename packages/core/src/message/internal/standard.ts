/** Standard Schemas for codecs: whether a value is one, and the body that it returns. https://standardschema.dev */
import type { StandardSchemaV1 } from "effect/StandardSchema"
import * as OptionKind from "../../options/OptionKind.ts"
import * as Thenable from "../Thenable.ts"
import { InvalidBody, type Issue } from "../InvalidBody.ts"

const isHolder = (value: unknown): value is object =>
  (typeof value === "object" && value !== null) || typeof value === "function"

/** Returns the properties of a Standard Schema; `undefined` for other values. */
const standardOf = (value: unknown): Readonly<Record<string, unknown>> | undefined => {
  if (!isHolder(value)) return undefined
  try {
    const standard: unknown = Reflect.get(value, "~standard")
    return OptionKind.isObject(standard) ? (standard as Readonly<Record<string, unknown>>) : undefined // Read by name only.
  } catch {
    return undefined // A getter that throws.
  }
}

const since = "zod 3.24, valibot 1 or arktype 2"

/** A Standard Schema of version 1, such as one of zod, valibot or arktype. */
export const kind: OptionKind.OptionKind = {
  expected: `a Standard Schema of version 1, such as one of ${since}`,
  holds: (value) => {
    const standard = standardOf(value)
    return standard?.["version"] === 1 && typeof standard["validate"] === "function"
  },
  remedy: (value) => {
    if (isOfEffect(value)) return "With a schema of Effect, write codec: SchemaCodec.make(schema)"
    return isHolder(value) && (standardOf(value) !== undefined || !OptionKind.isPlain(value))
      ? `Update the library that made it, to ${since} or newer`
      : undefined
  }
}

const isOfEffect = (value: unknown): boolean => {
  try {
    return isHolder(value) && "ast" in value
  } catch {
    return false // A proxy that throws.
  }
}

/** Returns the body that a schema makes of a value. Throws, or rejects with, an `InvalidBody`. */
export const validate = <A>(schema: StandardSchemaV1<unknown, A>, value: unknown): A | Promise<A> => {
  const result: unknown = schema["~standard"].validate(value)
  return Thenable.map(result, read) as A | Promise<A> // By the type of the schema.
}

const read = (result: unknown): unknown => {
  if (typeof result !== "object" || result === null) {
    throw new TypeError(`a Standard Schema must return a value or issues, got ${OptionKind.show(result)}`)
  }
  // The result may be a list: arktype returns one of issues, which has itself as `issues`.
  const issues: unknown = Reflect.get(result, "issues")
  if (issues !== undefined) throw invalid(Array.isArray(issues) ? issues : [])
  if ("value" in result) return result.value
  throw new TypeError(`a Standard Schema must return a value or issues, got ${OptionKind.show(result)} without either`)
}

/** Makes the error of a body from the issues of its schema. */
export const invalid = (issues: ReadonlyArray<unknown>): InvalidBody =>
  new InvalidBody({ issues: issues.length === 0 ? [refused] : issues.map(toIssue) })

const refused: Issue = { path: "", message: "the schema refuses it and reports no reason" }

/** The most characters of a path or a message. */
const longest = 256

const cut = (text: string): string => (text.length > longest ? `${text.slice(0, longest)}…` : text)

const toIssue = (issue: unknown): Issue => {
  if (!OptionKind.isObject(issue)) return refused
  const message: unknown = Reflect.get(issue, "message")
  const path: unknown = Reflect.get(issue, "path")
  return {
    path: Array.isArray(path) ? cut(path.slice(0, longest).reduce<string>(extended, "")) : "",
    message: typeof message === "string" ? cut(message) : refused.message
  }
}

/** Appends a segment to a path, as a program would write it. */
const extended = (path: string, segment: unknown): string => {
  const key: unknown = OptionKind.isObject(segment) ? Reflect.get(segment, "key") : segment
  if (typeof key !== "string") return `${path}[${String(key)}]`
  if (!/^[\p{ID_Start}_$][\p{ID_Continue}$-]*$/u.test(key)) return `${path}[${JSON.stringify(key)}]`
  return path === "" ? key : `${path}.${key}`
}
