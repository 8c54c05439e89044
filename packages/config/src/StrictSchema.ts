/**
 * Schemas for configuration that people write by hand: an unknown key is an error, and each error has a remedy.
 *
 * When to use: for your own configuration around the schemas of `PolicyConfig`.
 *
 * @example
 * ```ts
 * import { PolicyConfig, StrictSchema } from "@requeue/config"
 * import { Result, Schema } from "effect"
 *
 * const Job = StrictSchema.struct({ queue: Schema.String, retry: PolicyConfig.RetryPolicy })
 * const job = Schema.decodeUnknownResult(Job)({ queue: "orders", retry: { maxRetires: 5 } }, { errors: "all" })
 * const problems = Result.isFailure(job) ? StrictSchema.problems(job.failure) : []
 * problems.map(({ path, remedy }) => [path.join("."), remedy]) // => [["retry.maxRetires", "Did you mean maxRetries?"]]
 * ```
 */
import { OptionKind, OptionNames } from "@requeue/core/port"
import * as Effect from "effect/Effect"
import * as Predicate from "effect/Predicate"
import * as Schema from "effect/Schema"
import * as SchemaGetter from "effect/SchemaGetter"
import * as SchemaIssue from "effect/SchemaIssue"
import * as Fields from "./internal/fields.ts"

const unknownKey = "unknown key; known are "

/** The results of {@link homes}, by the known keys in the message of an unknown one. */
const homesByKeys = new Map<string, Readonly<Record<string, string>>>()

/** The value in a template of {@link homes}. */
const placeholder = "%"

/** Returns how to write each key that belongs inside a field: `retry: { maxRetries: % }` by `maxRetries`. */
const homes = (fields: Schema.Struct.Fields): Readonly<Record<string, string>> => {
  const found: Record<string, string> = {}
  for (const [home, schema] of Object.entries(fields)) {
    const structs = Fields.structs(schema)
    for (const { name } of structs.flatMap((struct) => struct.fields)) {
      if (Object.hasOwn(fields, name) || Object.hasOwn(found, name)) continue
      const owners = structs.filter((struct) => struct.fields.some((field) => field.name === name))
      found[name] = `${home}: { ${[...companions(owners, name), `${name}: ${placeholder}`].join(", ")} }`
    }
  }
  return found
}

/** Returns the required keys next to a key, with the value of those that allow one value only. */
const companions = (owners: ReadonlyArray<Fields.Struct>, name: string): ReadonlyArray<string> => {
  const [first, ...others] = owners
  const required = first!.fields.filter((field) => field.isRequired && field.name !== name) // A struct has the key.
  return required
    .filter((field) => others.every((other) => other.fields.some((each) => each.name === field.name)))
    .map((field) => `${field.name}: ${field.literal === undefined || others.length > 0 ? "…" : field.literal}`)
}

const escape = (name: string): string => name.replaceAll(/[^\w-]/g, "\\$&")

/** Makes a struct that refuses any other key. */
export const struct = <Fields extends Schema.Struct.Fields>(fields: Fields): Schema.Struct<Fields> => {
  const known = Object.keys(fields)
  const other = Schema.String.check(Schema.isPattern(new RegExp(`^(?!(?:${known.map(escape).join("|")})$)`)))
  homesByKeys.set(known.join(", "), homes(fields))
  const nothing = Schema.Never.annotate({ message: `${unknownKey}${known.join(", ")}` })
  const strict: unknown = Schema.StructWithRest(Schema.Struct(fields), [Schema.Record(other, nothing)])
  return strict as Schema.Struct<Fields> // The rest adds only keys whose value is `never`.
}

/**
 * Decodes with a constructor. If the constructor throws a RangeError, the error becomes an issue at the path of the field
 * that its message names.
 */
export const through =
  <Input extends object, Output extends object>(identifier: string, make: (input: Input) => Output) =>
  <Encoded>(schema: Schema.Codec<Input, Encoded>): Schema.Codec<Output, Encoded> =>
    schema.pipe(
      Schema.decodeTo(
        Schema.declare((u): u is Output => typeof u === "object" && u !== null, { identifier }),
        {
          decode: SchemaGetter.transformEffect((input: Input, options) => {
            try {
              return Effect.succeed(make(input))
            } catch (error) {
              if (!(error instanceof RangeError)) throw error
              const issue = new SchemaIssue.InvalidValue({ message: error.message }, input, options)
              return Effect.fail(new SchemaIssue.Pointer(pathOf(error.message, input), issue))
            }
          }),
          encode: SchemaGetter.forbiddenEncoding
        }
      )
    )

/** The path of the field that a constructor's message names: `sequence: delays[1]: must be …`, or `constant: jitter.proportional must be …`. */
const pathOf = (message: string, input: object): Problem["path"] => {
  const [, field = "", member, index] =
    /^[\w.]+(?: \(queue .*?\))?: (\w+)(?:\.(\w+))?(?:\[(\d+)\])?/.exec(message) ?? []
  if (Object.hasOwn(input, field) && member !== undefined)
    return index === undefined ? [field, member] : [field, member, Number(index)]
  if (Object.hasOwn(input, field)) return index === undefined ? [field] : [field, Number(index)]
  const parent = Object.entries(input).find(([, value]) => Predicate.isObject(value) && Object.hasOwn(value, field))
  return parent === undefined ? [] : [parent[0], field]
}

/** One error of an input. */
export interface Problem {
  /** The keys that lead from the input to the wrong value. */
  readonly path: ReadonlyArray<string | number>
  readonly detail: string
  /** How to fix the error. Default: none, if the detail is enough. */
  readonly remedy?: string | undefined
}

const format = SchemaIssue.makeFormatterStandardSchemaV1()

const ofUnknownKey = (path: Problem["path"], known: string, value: unknown): Problem => {
  const key = String(path.at(-1))
  const templates = homesByKeys.get(known) ?? {}
  const template = Object.hasOwn(templates, key) ? templates[key] : undefined
  if (template === undefined) return { path, detail: "unknown key", remedy: OptionNames.remedy(key, known.split(", ")) }
  const shown = ["string", "number", "boolean"].includes(typeof value) ? OptionKind.show(value) : "…"
  const [home] = template.split(":")
  const written = template.replace(placeholder, () => shown)
  return { path, detail: `unknown key: ${key} belongs in ${home}`, remedy: `Write ${written}` }
}

const explain = (path: Problem["path"], message: string, value?: unknown): Problem => {
  if (message.startsWith(unknownKey)) return ofUnknownKey(path, message.slice(unknownKey.length), value)
  // The constructor's name is not in the input, and the path names the field already.
  const field = path.findLast((segment) => typeof segment === "string")
  const detail = message
    .replaceAll(/\s+/g, " ")
    .replace(/^\w+(?:\.\w+)?(?: \(queue .*?\))?: (?=\w)/, "")
    .replace(new RegExp(`^(?:\\w+\\.)?${field}(\\[\\d+\\])?:? (?=must )`), "")
  const [, problem = detail, remedy] =
    /^(.*must be a duration.*?)(?:\. (Write .*|Did you mean .*))?$/.exec(detail) ?? []
  return /must be a duration/.test(detail)
    ? {
        path,
        detail: problem,
        remedy: remedy ?? 'Write a number of milliseconds, or text such as "10 seconds" or "5 minutes"'
      }
    : { path, detail }
}

/** Turns the RangeError of a constructor into a problem. */
export const refusal = ({ message }: RangeError, input: object): Problem => explain(pathOf(message, input), message)

/** The words for the schema's names of types. */
const typeNames: Readonly<Record<string, string>> = {
  number: "a number",
  string: "text",
  boolean: "true or false",
  object: "an object",
  array: "an array"
}

const at = (input: unknown, path: Problem["path"]): unknown =>
  path.reduce<unknown>(
    (inner, key) => (Predicate.isObject(inner) || Array.isArray(inner) ? Reflect.get(inner, key) : undefined),
    input
  )

/** Returns a schema's problem in Requeue's words, with the value if the input is known. */
const inWords = (problem: Problem, input: unknown): Problem => {
  const { detail, path } = problem
  if (detail === "Missing key") return { path, detail: "the value is missing", remedy: "Add it" }
  const [, expected] = /^Expected (.+)$/.exec(detail) ?? []
  if (expected === undefined && (!detail.startsWith("must be ") || /, got /.test(detail))) return problem
  const words = expected?.split(" | ") ?? []
  const isChoice = words.length > 1 && words.every((word) => word.startsWith('"'))
  const type = expected === undefined ? undefined : (typeNames[expected] ?? expected)
  const rule = type === undefined ? detail : `must be ${isChoice ? `one of ${words.join(", ")}` : type}`
  const value = at(input, path)
  return { ...problem, detail: value === undefined ? rule : `${rule}, got ${OptionKind.show(value)}` }
}

/**
 * Returns the problems of an input, each with its path. Decode with `{ errors: "all" }` to get more than the first problem.
 * Pass the input to show wrong values.
 */
export const problems = ({ issue }: Schema.SchemaError, input?: unknown): ReadonlyArray<Problem> =>
  format(issue).issues.map(({ message, path = [] }) => {
    const keys = path.map((segment) => {
      const key = typeof segment === "object" ? segment.key : segment
      return typeof key === "number" ? key : String(key)
    })
    return inWords(explain(keys, message, at(input, keys)), input)
  })
