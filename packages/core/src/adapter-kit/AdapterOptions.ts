/**
 * The options of an adapter, which come from code, a config file and a URL's query: decoded by one set of schemas, with
 * errors that name the option and never show its value.
 */
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as SchemaIssue from "effect/SchemaIssue"
import { ConfigurationError } from "../options/ConfigurationError.ts"
import * as OptionNames from "../options/OptionNames.ts"

/** Schemas that need no services, by the option's name. */
export type Fields = Readonly<Record<string, Schema.Codec<any, any>>>

/** Those that were given. */
export type Given<F extends Fields> = { readonly [K in keyof F]?: F[K]["Type"] }

const format = SchemaIssue.makeFormatterStandardSchemaV1()

const withoutUndefined = (options: object): Record<string, unknown> =>
  Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined))

/**
 * A decoder of these options. A later source beats an earlier one; an `undefined` is not given; a name that is none of
 * the fields is refused.
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
    const field = String(issue?.path?.[0] ?? "options")
    return refuse(field, issue?.message ?? "invalid", `See the options table of @requeue/adapter-${broker}`)
  }
}
