/**
 * Brokers, queues and policies from a config file.
 *
 * When to use: where operators and not programmers choose the broker and tune policies, and where the `requeue` command
 * is to know the program's queues. {@link load} finds, reads and checks the file; nothing is connected before
 * {@link Configuration.layer} is built.
 */
import {
  type Adapter,
  Adapters,
  Broker,
  type BrokerError,
  type Capabilities,
  ConfigurationError,
  ConsumerOptions,
  Feasibility,
  RetryPolicy
} from "@requeue/core"
import { OptionNames } from "@requeue/core/adapter-kit"
import { StrictSchema } from "@requeue/core/schema"
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
  readonly policies: Readonly<Record<string, RetryPolicy.RetryPolicy>>
  readonly queues: Readonly<Record<string, ConfiguredQueue>>
  /** The broker of what names none: the file's `broker`, or its only one. */
  readonly defaultBroker: string | undefined
  /** The adapter and address of a broker. Fails when a secret of it is missing. Default: the default broker. */
  readonly find: (broker?: string) => Effect.Effect<Adapters.Resolved, ConfigFileError>
  /** What a broker's adapter refused, at its place in the file. */
  readonly locate: (broker: string, error: ConfigurationError.ConfigurationError) => ConfigFileError
  /**
   * A broker of the file. Building it fails, with the path in the file, when a secret is missing, the adapter refuses an
   * option, or the broker cannot do what one of its queues asks.
   */
  readonly layer: (broker?: string) => Layer.Layer<Broker.Broker, BrokerError.BrokerError | ConfigFileError>
}

export interface Options {
  /** The file. Default: the first `requeue.config.{ts,mts,js,mjs,json,yaml,yml}` here or in a folder above. */
  readonly file?: string | undefined
  /** Default: the process's. */
  readonly environment?: Environment.Environment | undefined
  /** Adapters of brokers that are not among ours, for URLs of their schemes. Default: none. */
  readonly adapters?: ReadonlyArray<Adapter.Adapter> | undefined
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
export const load = (options: Options = {}): Effect.Effect<Configuration, ConfigFileError> =>
  Effect.gen(function* () {
    const { adapters, cwd = process.cwd(), environment = process.env, file: named } = options
    const source = yield* Source.locate(named, cwd)
    const { file } = source
    const written = yield* Source.read(source)
    const [document, misses] = Environment.override(written, environment)
    const [rest, brokers] = splitBrokers(document)
    const expanded = Environment.expand(rest, environment, [])
    const decoded = decodeFile(brokers === undefined ? expanded.value : { ...Object(expanded.value), brokers }, {
      errors: "all"
    })
    const shown = ({ detail, ...rest }: StrictSchema.Problem) => {
      return { ...rest, detail: Environment.mask(detail, expanded.secrets) }
    }
    const wrong = Result.isFailure(decoded) ? StrictSchema.problems(decoded.failure).map(shown) : []
    // A secret that is missing explains what is wrong at its place.
    const unexplained = wrong.filter(({ path }) => !expanded.problems.some((missing) => samePath(missing.path, path)))
    const problems = [...misses, ...expanded.problems, ...unexplained]
    if (problems.length > 0 || Result.isFailure(decoded)) return yield* new ConfigFileError({ file, problems })
    const linked = Link.link(decoded.success)
    if (Result.isFailure(linked)) return yield* new ConfigFileError({ file, problems: linked.failure.map(shown) })
    return make(file, linked.success, decoded.success.brokers, { adapters, environment })
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
  { adapters, environment }: Pick<Options, "adapters"> & { readonly environment: Environment.Environment }
): Configuration => {
  const refuse = (problems: ReadonlyArray<StrictSchema.Problem>) => Effect.fail(new ConfigFileError({ file, problems }))

  const opened = (broker: string) => Environment.expand(brokers[broker], environment, ["brokers", broker])

  const locate = (
    broker: string,
    { broker: kind = broker, detail, field, queue, remedy }: ConfigurationError.ConfigurationError
  ): ConfigFileError => {
    const shown = Environment.mask(detail, opened(broker).secrets)
    const asking = Object.entries(queues).find(([, { name }]) => name === queue)
    const problem =
      asking !== undefined && isWish(field)
        ? { path: placeOf(...asking, field), detail: `on broker ${kind}, for queue ${asking[0]}: ${shown}`, remedy }
        : { path: ["brokers", broker, field], detail: shown, remedy }
    return new ConfigFileError({ file, problems: [problem] })
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
    const found = Adapters.find({ ...options, url: Redacted.make(url) }, adapters)
    return yield* Effect.mapError(found, (error) => locate(name, error))
  })

  const layer = Effect.fnUntraced(function* (name: string) {
    const resolved = yield* find(name)
    const { options, url } = Redacted.value(resolved.address)
    const here = Object.entries(queues).filter(([, { broker }]) => broker === name)
    const checked = Effect.gen(function* () {
      const broker = yield* Broker.Broker
      const problems = here.flatMap(([key, queue]) => impossible(key, queue, broker.capabilities))
      if (problems.length > 0) return yield* refuse(problems)
      // What only some queues of the broker cannot do, as FIFO queues, is not among its capabilities.
      for (const [, queue] of here) yield* resolved.adapter.operations?.plan(wishOf(queue), url, options) ?? Effect.void
      return broker
    })
    return Layer.effect(Broker.Broker, checked).pipe(
      Layer.provide(Adapters.layerOf(resolved)),
      Layer.catch((error) =>
        Layer.effect(
          Broker.Broker,
          Effect.fail(error instanceof ConfigurationError.ConfigurationError ? locate(name, error) : error)
        )
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

const wishOf = ({ name, options: { retry = RetryPolicy.make() } }: ConfiguredQueue): Adapter.PlanRequest => ({
  queue: name,
  retry
})

/** Whether a field is the queue's, and not an option of its broker. */
const isWish = (field: string): boolean => /^(queue|retry)(\.|$)/.test(field)

/** Where a wish of a queue stands in the file. */
const placeOf = (key: string, { retryPath }: ConfiguredQueue, field: string): StrictSchema.Problem["path"] => {
  const [first = "", ...rest] = field.split(".")
  if (first === "retry") return [...retryPath, ...rest]
  return ["queues", key, first === "queue" ? "name" : first, ...rest]
}

/** What the broker cannot do of a queue's wishes, at the places where they are made. */
const impossible = (
  key: string,
  queue: ConfiguredQueue,
  capabilities: Capabilities.Capabilities
): ReadonlyArray<StrictSchema.Problem> =>
  Feasibility.check(ConsumerOptions.resolve(queue.options, capabilities.lease), capabilities, queue.name).flatMap(
    ({ answer, field }) => {
      if (answer._tag !== "Impossible") return []
      const detail = `on broker ${capabilities.broker}, for queue ${key}: ${answer.why}`
      return [{ path: placeOf(key, queue, field), detail, remedy: answer.remedy }]
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
