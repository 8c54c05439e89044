/**
 * Brokers, queues and policies from a config file.
 *
 * When to use: where operators and not programmers choose the broker and tune policies, and where the `requeue` command
 * is to know the program's queues. {@link load} finds, reads and checks the file; nothing is connected before
 * {@link Configuration.layer} is built.
 */
import * as Adapters from "@requeue/core/Adapters"
import { Broker } from "@requeue/core/Broker"
import type { BrokerError } from "@requeue/core/BrokerError"
import type { Capabilities } from "@requeue/core/Capabilities"
import { ConfigurationError } from "@requeue/core/ConfigurationError"
import * as ConsumerOptions from "@requeue/core/ConsumerOptions"
import * as Feasibility from "@requeue/core/Feasibility"
import * as OptionNames from "@requeue/core/OptionNames"
import type { RetryPolicy } from "@requeue/core/RetryPolicy"
import * as StrictSchema from "@requeue/core/StrictSchema"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import { ConfigFile } from "./ConfigFile.ts"
import { ConfigFileError } from "./ConfigFileError.ts"
import type { ConfiguredQueue } from "./ConfiguredQueue.ts"
import * as Environment from "./internal/environment.ts"
import * as Link from "./internal/link.ts"
import * as Source from "./internal/source.ts"

export interface Configuration {
  /** The file, as it was found. */
  readonly file: string
  /** The names of its brokers. */
  readonly brokers: ReadonlyArray<string>
  readonly policies: Readonly<Record<string, RetryPolicy>>
  readonly queues: Readonly<Record<string, ConfiguredQueue>>
  /** The broker of what names none: the file's `broker`, or its only one. */
  readonly defaultBroker: string | undefined
  /** The adapter and address of a broker. Fails when a secret of it is missing. Default: the default broker. */
  readonly find: (broker?: string) => Effect.Effect<Adapters.Resolved, ConfigFileError>
  /** What a broker's adapter refused, at its place in the file. */
  readonly locate: (broker: string, error: ConfigurationError) => ConfigFileError
  /**
   * A broker of the file. Building it fails, with the path in the file, when a secret is missing, the adapter refuses an
   * option, or the broker cannot do what one of its queues asks.
   */
  readonly layer: (broker?: string) => Layer.Layer<Broker, BrokerError | ConfigFileError>
}

export interface Options {
  /** The file. Default: the first `requeue.config.{ts,mts,js,mjs,json,yaml,yml}` here or in a folder above. */
  readonly file?: string | undefined
  /** Default: the process's. */
  readonly environment?: Environment.Environment | undefined
  /** Where files are looked for. Default: the process's working directory. */
  readonly cwd?: string | undefined
}

/** The `file` of the error when there is no config file. */
export const { anyName } = Source

const decodeFile = Schema.decodeUnknownResult(ConfigFile)

/**
 * Loads a config file. Fails with everything that is wrong with it.
 *
 * @example
 * ```ts no-run
 * import { Configuration } from "@requeue/config"
 * import { Consumer } from "@requeue/core"
 * import * as Effect from "effect/Effect"
 *
 * const program = Effect.gen(function* () {
 *   const config = yield* Configuration.load()
 *   const webhooks = yield* Configuration.queue(config, "webhooks")
 *   yield* Effect.provide(
 *     Effect.andThen(Consumer.start(webhooks, webhooks.options, ({ body }) => console.log(body)), Effect.never),
 *     config.layer(webhooks.broker)
 *   )
 * })
 * ```
 */
export const load = ({ cwd = process.cwd(), environment = process.env, file: named }: Options = {}): Effect.Effect<
  Configuration,
  ConfigFileError
> =>
  Effect.gen(function* () {
    const source = yield* Source.locate(named, cwd)
    const { file } = source
    const written = yield* Source.read(source)
    const [document, misses] = Environment.override(written, environment)
    const [rest, brokers] = splitBrokers(document)
    const expanded = Environment.expand(rest, environment, [])
    const decoded = decodeFile(brokers === undefined ? expanded.value : { ...Object(expanded.value), brokers }, {
      errors: "all"
    })
    const wrong = Result.isFailure(decoded) ? StrictSchema.problems(decoded.failure) : []
    const seen = wrong.map((problem) => ({ ...problem, detail: Environment.mask(problem.detail, expanded.secrets) }))
    // A secret that is missing explains what is wrong at its place.
    const unexplained = seen.filter(({ path }) => !expanded.problems.some((missing) => samePath(missing.path, path)))
    const problems = [...misses, ...expanded.problems, ...unexplained]
    if (problems.length > 0 || Result.isFailure(decoded)) return yield* new ConfigFileError({ file, problems })
    const linked = Link.link(decoded.success)
    if (Result.isFailure(linked)) return yield* new ConfigFileError({ file, problems: linked.failure })
    return make(file, linked.success, decoded.success.brokers, environment)
  })

/** Brokers stay as they are written until one is used: the secrets of the others need not be there. */
const splitBrokers = (document: unknown): readonly [unknown, unknown] => {
  if (typeof document !== "object" || document === null || Array.isArray(document)) return [document, undefined]
  const { brokers, ...rest } = document as { readonly brokers?: unknown }
  return [rest, brokers]
}

const samePath = (a: StrictSchema.Problem["path"], b: StrictSchema.Problem["path"]): boolean =>
  JSON.stringify(a) === JSON.stringify(b)

const make = (
  file: string,
  { defaultBroker, policies, queues }: Link.Linked,
  brokers: ConfigFile["brokers"],
  environment: Environment.Environment
): Configuration => {
  const refuse = (problems: ReadonlyArray<StrictSchema.Problem>) => Effect.fail(new ConfigFileError({ file, problems }))

  const opened = (broker: string) => Environment.expand(brokers[broker], environment, ["brokers", broker])

  const locate = (broker: string, { detail, field, remedy }: ConfigurationError): ConfigFileError => {
    const shown = Environment.mask(detail, opened(broker).secrets)
    return new ConfigFileError({ file, problems: [{ path: ["brokers", broker, field], detail: shown, remedy }] })
  }

  const named = (broker: string | undefined): Effect.Effect<string, ConfigFileError> => {
    const name = broker ?? defaultBroker
    const known = Object.keys(brokers)
    if (name === undefined) {
      const remedy = `Write broker: ${known[0]}, or name one of ${known.join(", ")}`
      return refuse([{ path: ["broker"], detail: "no broker is the default", remedy }])
    }
    if (known.includes(name)) return Effect.succeed(name)
    return refuse([
      { path: ["brokers"], detail: `there is no broker named ${name}`, remedy: OptionNames.remedy(name, known) }
    ])
  }

  const find = Effect.fnUntraced(function* (name: string) {
    const { problems, value } = opened(name)
    if (problems.length > 0) return yield* refuse(problems)
    const { url, ...options } = value as { readonly url: string }
    const found = Adapters.find({ ...options, url: Redacted.make(url) })
    return yield* Effect.mapError(found, (error) => locate(name, error))
  })

  const layer = Effect.fnUntraced(function* (name: string) {
    const resolved = yield* find(name)
    const checked = Effect.tap(Broker, ({ capabilities }) => {
      const problems = Object.entries(queues)
        .filter(([, { broker }]) => broker === name)
        .flatMap(([key, queue]) => impossible(key, queue, capabilities))
      return problems.length === 0 ? Effect.void : refuse(problems)
    })
    return Layer.effect(Broker, checked).pipe(
      Layer.provide(Adapters.layerOf(resolved)),
      Layer.catch((error) =>
        Layer.effect(Broker, Effect.fail(error instanceof ConfigurationError ? locate(name, error) : error))
      )
    )
  })

  return {
    file,
    brokers: Object.keys(brokers),
    policies,
    queues,
    defaultBroker,
    find: (broker) => Effect.flatMap(named(broker), find),
    locate,
    layer: (broker) => Layer.unwrap(Effect.flatMap(named(broker), layer))
  }
}

/** What the broker cannot do of a queue's wishes, at the places where they are made. */
const impossible = (
  key: string,
  { name, options, retryPath }: ConfiguredQueue,
  capabilities: Capabilities
): ReadonlyArray<StrictSchema.Problem> =>
  Feasibility.check(ConsumerOptions.toWish(options, capabilities.lease), capabilities, name).flatMap(
    ({ answer, field }) => {
      if (answer._tag !== "Impossible") return []
      const [first, ...rest] = field.split(".")
      const path = first === "retry" ? [...retryPath, ...rest] : ["queues", key, ...field.split(".")]
      return [
        { path, detail: `on broker ${capabilities.broker}, for queue ${key}: ${answer.why}`, remedy: answer.remedy }
      ]
    }
  )

/** A queue of the file by its key. */
export const queue = <A = any>(
  config: Configuration,
  key: string
): Effect.Effect<ConfiguredQueue<A>, ConfigFileError> =>
  Effect.suspend(() => {
    const found = Object.hasOwn(config.queues, key) ? config.queues[key] : undefined
    if (found !== undefined) return Effect.succeed(found)
    const remedy = OptionNames.remedy(key, Object.keys(config.queues))
    return Effect.fail(
      new ConfigFileError({
        file: config.file,
        problems: [{ path: ["queues"], detail: `there is no queue named ${key}`, remedy }]
      })
    )
  })
