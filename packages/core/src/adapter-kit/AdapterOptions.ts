/**
 * Options of adapters, which come from code, a config file and a URL's query. One set of schemas decodes them all; errors
 * name the option, and never show a value that may be secret.
 */
import * as Predicate from "effect/Predicate"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as SchemaIssue from "effect/SchemaIssue"
import { ConfigurationError } from "../options/ConfigurationError.ts"
import * as OptionNames from "../options/OptionNames.ts"

/** The schemas of options by name; they need no services. */
export type Fields = Readonly<Record<string, Schema.ConstraintDecoder<unknown>>>

/** The decoded options. One that no source has is missing. */
export type Given<F extends Fields> = { readonly [K in keyof F]?: F[K]["Type"] }

const format = SchemaIssue.makeFormatterStandardSchemaV1()

const withoutUndefined = (options: object): Record<string, unknown> =>
  Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined))

/**
 * Makes a decoder of options from several sources. A later source beats an earlier one, and `undefined` counts as missing.
 * It fails for an unknown name, and for a value that its schema refuses. `broker` is the adapter's name, for errors.
 *
 * @example
 * ```ts
 * import { AdapterOptions } from "@requeue/core/schema"
 * import { Result, Schema } from "effect"
 *
 * const decode = AdapterOptions.decoder("memory", { prefetch: Schema.Number })
 * Result.getOrThrow(decode({ prefetch: 10 }, { prefetch: 20 })) // => { prefetch: 20 }
 * ```
 */
export const decoder = <F extends Fields>(broker: string, fields: F) => {
  const optional = Object.fromEntries(
    Object.entries(fields).map(([name, schema]) => [name, Schema.optionalKey(schema)])
  )
  const decodeFields = Schema.decodeUnknownResult(Schema.Struct(optional))
  const refuse = (field: string, detail: string, remedy: string) =>
    Result.fail(new ConfigurationError({ field, detail, remedy, broker }))

  return (...sources: ReadonlyArray<object>): Result.Result<Given<F>, ConfigurationError> => {
    const options: Record<string, unknown> = Object.assign({}, ...sources.map(withoutUndefined))
    const unknown = Object.keys(options).find((name) => !Object.hasOwn(fields, name))
    if (unknown !== undefined) {
      return refuse(unknown, "unknown option", OptionNames.remedy(unknown, Object.keys(fields)))
    }
    const decoded = decodeFields(options)
    if (Result.isSuccess(decoded)) return Result.succeed(decoded.success)
    const issue = format(decoded.failure.issue).issues[0]
    const path = (issue?.path ?? ["options"]).map((part) => (typeof part === "object" ? part.key : part))
    const value = path.reduce<unknown>(
      (at, key) => (Predicate.isObjectOrArray(at) ? Reflect.get(at, key) : undefined),
      options
    )
    const place = path.reduce<string>(
      (at, key) => (typeof key === "number" ? `${at}[${key}]` : `${at}.${String(key)}`),
      ""
    )
    // A text may be a secret.
    const got = typeof value === "number" || typeof value === "boolean" ? `, got ${value}` : ""
    const detail = `${issue?.message ?? "invalid"}${got}`
    return refuse(place.slice(1), detail, `See the options table of the adapter for ${broker}`)
  }
}
