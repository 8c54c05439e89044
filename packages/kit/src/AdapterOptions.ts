/**
 * Decodes the options of adapters by the same kinds, from code, a config file or a URL's query. Errors name the option
 * and hide values that may be secret.
 */
import type * as Config from "effect/Config"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import * as Result from "effect/Result"
import { Adapter, ConfigurationError, type OptionKind } from "@requeue/core/port"
import * as OptionTree from "./OptionTree.ts"

/** The kinds of options by name. */
export type Fields = OptionTree.Kinds

/** The types of options, all present. */
export type Values<F extends Fields> = { readonly [K in keyof F]: OptionKind.Value<F[K]> }

/** The types of options, all optional. */
export type Given<F extends Fields> = Partial<Values<F>>

const withoutUndefined = (options: object): Record<string, unknown> =>
  Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined))

const elsewhere = OptionTree.optional({
  expected: "given in an object with the URL, as in connect({ url, … })",
  holds: () => false
} satisfies OptionKind.OptionKind)

/** Returns the text of a secret that {@link secretProblem} has accepted. */
export const textOf = (secret: string | Redacted.Redacted): string =>
  typeof secret === "string" ? secret : Redacted.value(secret)

/**
 * Returns the error of the first secret that is not text, such as an unquoted password of digits in a config file. A
 * secret that is `undefined` is not an error. `broker` is the adapter's name, and `secrets` has the values by option.
 */
export const secretProblem = (
  broker: string,
  secrets: Readonly<Record<string, unknown>>
): ConfigurationError.ConfigurationError | undefined => {
  const isText = (given: unknown) =>
    given === undefined || typeof (Redacted.isRedacted(given) ? Redacted.value(given) : given) === "string"
  const wrong = Object.keys(secrets).find((name) => !isText(secrets[name]))
  return wrong === undefined
    ? undefined
    : new ConfigurationError.ConfigurationError({
        field: wrong,
        detail: "must be text",
        remedy: "Put the value in quotes",
        broker
      })
}

/** Adds to the problem of an unknown option that `connect` has where it belongs. */
const ofConnect = (problem: OptionTree.Problem): OptionTree.Problem => {
  const name = problem.place.slice(1)
  if (problem.detail !== OptionTree.unknownOption || !connectNames.includes(name)) return problem
  return { ...problem, remedy: `Move it to the options of connect: connect(broker, { ${name}: … })` }
}

const connectNames: ReadonlyArray<string> = Adapter.connectOptions

/**
 * Makes a decoder of options from several sources. Later sources override earlier ones. A value of `undefined` counts
 * as missing. The option's kind converts text: `"5"` to a number, `"10s"` to milliseconds. The decoder fails for an
 * unknown name, and for a value of the wrong kind. `broker` is the adapter's name, for errors. `others` are options
 * that the adapter reads separately; errors suggest them too. Default: none.
 *
 * @example
 * ```ts
 * import { OptionKind } from "@requeue/core/port"
 * import { AdapterOptions } from "@requeue/kit"
 * import { Result } from "effect"
 *
 * const decode = AdapterOptions.decoder("memory", { prefetch: OptionKind.whole(0) })
 * Result.getOrThrow(decode({ prefetch: 10 }, { prefetch: 20 })) // => { prefetch: 20 }
 * ```
 */
export const decoder = <F extends Fields>(broker: string, fields: F, others: ReadonlyArray<string> = []) => {
  const optional = Object.entries(fields).map(([name, kind]) => [name, OptionTree.optional(kind)])
  const kind = OptionTree.struct(Object.fromEntries([...others.map((name) => [name, elsewhere]), ...optional]))
  return (...sources: ReadonlyArray<object>): Result.Result<Given<F>, ConfigurationError.ConfigurationError> => {
    const options = OptionTree.read(Object.assign({}, ...sources.map(withoutUndefined)), kind)
    const problem =
      sources.map((source) => OptionTree.problemOfSource(source, fields)).find(Boolean) ??
      OptionTree.problem(options, kind)
    if (problem === undefined) return Result.succeed(options as Given<F>) // All kinds are checked.
    const { detail, place, remedy = `See the options table of the adapter for ${broker}` } = ofConnect(problem)
    return Result.fail(new ConfigurationError.ConfigurationError({ field: place.slice(1), detail, remedy, broker }))
  }
}

/** Makes something, such as a broker, with options that come from Effect's Config. */
export const fromConfig = <O, A, E, R>(
  options: Config.Wrap<O>,
  make: (options: O) => Effect.Effect<A, E, R>
): Effect.Effect<A, E | Config.ConfigError, R> =>
  Effect.gen(function* () {
    // Imported lazily: others do not need it.
    const { unwrap } = yield* Effect.promise(() => import("effect/Config"))
    return yield* make(yield* unwrap(options))
  })
