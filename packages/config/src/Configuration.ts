/**
 * Brokers, queues and policies from a config file.
 *
 * When to use: when operators rather than programmers choose the broker and tune policies, or when the `requeue` command needs
 * the program's queues. {@link load} finds, reads and checks the file. It connects nothing; {@link Configuration.layer} does.
 */
import { Adapters, Broker, BrokerError, Codec, ConfigurationError, RetryPolicy, Store } from "@requeue/core"
import { type Adapter, OptionKind, OptionNames } from "@requeue/core/port"
import type { ConnectOptions } from "@requeue/core/promise"
import * as Effect from "effect/Effect"
import type { StandardSchemaV1 } from "effect/StandardSchema"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import * as Result from "effect/Result"
import * as Struct from "effect/Struct"
import { ConfigFile } from "./ConfigFile.ts"
import { ConfigFileError } from "./ConfigFileError.ts"
import type { ConfiguredQueue } from "./ConfiguredQueue.ts"
import * as BrokerProblems from "./internal/brokerProblems.ts"
import { ofBroker } from "./internal/connectOptions.ts"
import * as Checking from "./internal/checking.ts"
import * as Fields from "./internal/fields.ts"
import * as Layers from "./internal/layers.ts"
import * as Link from "./internal/link.ts"
import * as Masking from "./internal/masking.ts"
import * as Named from "./internal/named.ts"
import * as Overrides from "./internal/overrides.ts"
import * as Placeholders from "./internal/placeholders.ts"
import * as Source from "./internal/source.ts"
import * as Values from "./internal/values.ts"
import * as StrictSchema from "./StrictSchema.ts"

/** A loaded config file. */
export interface Configuration {
  /** The file's name as the program gave it, or its path relative to the working directory. */
  readonly file: string
  /** The names of the file's brokers. */
  readonly brokers: ReadonlyArray<string>
  /** The retry policies of the file, by name. */
  readonly policies: Readonly<Record<string, RetryPolicy.RetryPolicy>>
  /** The queues of the file, by key. */
  readonly queues: Readonly<Record<string, ConfiguredQueue>>
  /**
   * Returns the queues of a broker. A store has its outbox. Another broker that no queue names is an alternative to the default
   * broker: it has the queues that name no broker.
   */
  readonly queuesOn: (broker: string) => ReadonlyArray<ConfiguredQueue>
  /**
   * The broker of queues that name none: the file's `broker`, or its only broker; `undefined` if the file has neither.
   */
  readonly defaultBroker: string | undefined
  /**
   * Finds the adapter and address of a broker. Default: the default broker. Fails if a secret of that broker is missing.
   */
  readonly find: (broker?: string) => Effect.Effect<Adapters.Resolved, ConfigFileError>
  /** Turns the error of a broker's adapter into one that names its place in the file. */
  readonly locate: (broker: string, error: ConfigurationError.ConfigurationError) => ConfigFileError
  /** Makes the errors of a connected broker show this name. {@link Configuration.layer} does it as well. */
  readonly named: (broker: string, service: Broker.Service) => Broker.Service
  /** Returns the name of a broker's store; `undefined` if it has none. Default: that of the default broker. */
  readonly store: (broker?: string) => string | undefined
  /**
   * Makes the layer of a broker, with its store. Default: the default broker. Building it fails when a secret is missing, when the adapter
   * refuses an option, or when the broker cannot do what one of its queues demands; the error has the path in the file.
   */
  readonly layer: (broker?: string) => Layer.Layer<Broker.Broker, BrokerError.BrokerError | ConfigFileError>
  /** Makes the same layer without the store. */
  readonly alone: Configuration["layer"]
  /** Returns the options of `connect` in the file, for the layer `alone`. Default: those of the default broker. */
  readonly connectOptions: (broker?: string) => Pick<ConnectOptions, (typeof ofBroker)[number]>
}

/** The options of {@link load}: where the config file is, and what it may refer to. */
export interface Options {
  /** The file's name. Default: the first `requeue.config.{ts,mts,js,mjs,json,yaml,yml}` here or in a folder above. */
  readonly file?: string | undefined
  /** The environment variables. Default: those of the process. */
  readonly environment?: Overrides.Variables | undefined
  /** Adapters by other authors, for URLs of their schemes. Default: none. */
  readonly adapters?: ReadonlyArray<Adapter.Adapter> | undefined
  /** The folder in which the search for the file begins. Default: the process's working directory. */
  readonly cwd?: string | undefined
}

/** The value of `file` in the error of a missing config file. */
export const { anyName } = Source

/** The names and kinds of all options, for checks. */
export const kinds: OptionNames.Of<Options> = {
  file: OptionKind.text,
  environment: OptionKind.object("an object of text"),
  adapters: OptionKind.list,
  cwd: OptionKind.text
}

/** The paths that an entry of each section may have. */
const allowed = Object.fromEntries(
  Fields.structs(ConfigFile).flatMap(({ fields }) =>
    fields.flatMap(({ entries, name }) => (name === "brokers" ? [] : [[name, Fields.paths(entries)] as const]))
  )
)

/**
 * Loads a config file. Fails with a {@link ConfigFileError} that lists all of its problems, and dies with a RangeError for an
 * option that is unknown or of the wrong kind.
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
  OptionNames.orDie(OptionNames.refusal("Configuration.load", options, kinds), () => read(options))

const read = ({
  adapters,
  cwd = process.cwd(),
  environment = process.env,
  file: named
}: Options): Effect.Effect<Configuration, ConfigFileError> =>
  Effect.gen(function* () {
    const source = yield* Source.locate(named, cwd)
    const { file } = source
    const written = yield* Source.read(source)
    const { problems: misses, set: verbatim, value: document } = Overrides.override(written, environment, allowed)
    const [rest, brokers] = Checking.splitBrokers(document)
    const expanded = Placeholders.expand(rest, environment, [], verbatim)
    const unusable = [...Placeholders.mistaken(document, environment, verbatim), ...expanded.problems]
    const checked = Checking.check(Checking.joinBrokers(expanded.value, brokers), expanded.whole)
    const wrong = Result.isFailure(checked) ? checked.failure : []
    // A variable that cannot be filled in explains any other problem at its path.
    const unexplained = wrong
      .filter(({ path }) => !unusable.some((missing) => Values.samePath(missing.path, path)))
      .map((problem) => Masking.maskProblem(problem, expanded.secrets))
    const problems = [...misses, ...unusable, ...unexplained]
    if (problems.length > 0 || Result.isFailure(checked)) return yield* new ConfigFileError({ file, problems })
    return make(file, checked.success.linked, checked.success.brokers, {
      adapters,
      environment,
      secrets: expanded.secrets,
      verbatim,
      path: source.path
    })
  })

/** The context of a file, which {@link make} needs besides the file's content. */
interface Context extends Pick<Options, "adapters">, Pick<Placeholders.Expanded, "secrets"> {
  readonly environment: Overrides.Variables
  /** See `Overrides.Overridden`. */
  readonly verbatim: Overrides.Overridden["set"]
  /** The file's absolute path. */
  readonly path: string
}

/** The `secrets` are those outside of the brokers. */
const make = (
  file: string,
  { defaultBroker, policies, queues, queuesOn }: Link.Linked,
  brokers: ConfigFile["brokers"],
  { adapters, environment, path, secrets, verbatim }: Context
): Configuration => {
  const refuse = (problems: ReadonlyArray<StrictSchema.Problem>) => Effect.fail(new ConfigFileError({ file, problems }))

  const opened = (broker: string) => Placeholders.expand(brokers[broker], environment, ["brokers", broker], verbatim)

  const { locate, masked, refused } = BrokerProblems.make(
    file,
    queues,
    (broker) => new Map([...secrets, ...opened(broker).secrets])
  )

  const named = (broker: string | undefined): Effect.Effect<string, ConfigFileError> => {
    const name = broker ?? defaultBroker
    const problem = Link.problemOfBroker(name, Object.keys(brokers))
    return problem === undefined ? Effect.succeed(name!) : refuse([problem]) // One without a problem has been found.
  }

  const find = Effect.fnUntraced(function* (name: string) {
    const { problems, value } = opened(name)
    if (problems.length > 0) return yield* refuse(problems)
    const { url, ...options } = Struct.omit(value as Opened, ofBroker) // Overrides.override gave every broker its url
    const found = Adapters.find({ ...options, url: Redacted.make(url) }, { adapters, from: path })
    return yield* Effect.mapError(found, (error) => locate(name, error))
  })

  const alone = Effect.fnUntraced(function* (name: string) {
    const resolved = yield* find(name)
    const here = Object.entries(queues).filter(([, { broker }]) => broker === name)
    return Layer.effect(Broker.Broker, Layers.verified(name, here, resolved, refused)).pipe(
      Layer.provide(Adapters.layerOf(resolved)),
      Layers.mapError((error) =>
        error instanceof BrokerError.BrokerError ? Named.error(name, masked(name, error)) : located(name)(error)
      )
    )
  })

  const located =
    (broker: string) => (error: BrokerError.BrokerError | ConfigFileError | ConfigurationError.ConfigurationError) =>
      error instanceof ConfigurationError.ConfigurationError ? locate(broker, error) : error

  const optionsOf = (broker = defaultBroker) =>
    Link.optionsOf(broker !== undefined && Object.hasOwn(brokers, broker) ? brokers[broker] : undefined)

  const aloneOf: Configuration["alone"] = (broker) => Layer.unwrap(Effect.flatMap(named(broker), alone))

  const layer: Configuration["layer"] = (broker) => {
    const { inboxRetention, store, storeNamespace } = optionsOf(broker)
    if (store === undefined) return aloneOf(broker)
    const joined = Store.layer(aloneOf(broker), aloneOf(store), { inboxRetention, storeNamespace })
    return Layers.mapError(located(broker ?? defaultBroker!))(joined) // A broker with a store has been found.
  }

  return {
    file,
    brokers: Object.keys(brokers),
    policies,
    queues,
    queuesOn,
    defaultBroker,
    find: (broker) => Effect.flatMap(named(broker), find),
    locate,
    named: Named.service,
    store: (broker) => optionsOf(broker).store,
    layer,
    alone: aloneOf,
    connectOptions: (broker) => {
      const { inboxRetention, store, storeNamespace, waitForBroker } = optionsOf(broker)
      return { inboxRetention, store: store && aloneOf(store), storeNamespace, waitForBroker }
    }
  }
}

/** The options of a broker, as text of the file or as values of a module. */
interface Opened extends Partial<Readonly<Record<(typeof ofBroker)[number], unknown>>> {
  readonly url: string
}

/** The options of {@link queue}: how a program types the bodies of a queue of the file. */
export interface QueueOptions<A, I = A> {
  /**
   * A Standard Schema (zod, …) that checks bodies when they are sent and when they are read. Default: none, so bodies are
   * not checked.
   */
  readonly schema?: StandardSchemaV1<I, A> | undefined
}

const queueKinds: OptionNames.Of<QueueOptions<unknown>> = { schema: true }

/**
 * Finds a queue of the file by its key. Bodies have the types of the option `schema`. Without it, their type is `A`, which
 * nothing checks. Fails for an unknown key. Dies of a RangeError for an unknown option, an invalid schema, or a schema for
 * a queue whose `codec` in the file is not json.
 */
// Any, because the file does not say what type the bodies have.
export const queue = <A = any, I = A>(
  config: Configuration,
  key: string,
  options: QueueOptions<A, I> = {}
): Effect.Effect<ConfiguredQueue<A, I>, ConfigFileError> =>
  OptionNames.orDie(OptionNames.refusal("queue", options, queueKinds, key), () => find(config, key, options))

const find = <A, I>(
  config: Configuration,
  key: string,
  { schema }: QueueOptions<A, I>
): Effect.Effect<ConfiguredQueue<A, I>, ConfigFileError> =>
  Effect.suspend(() => {
    const found = Object.hasOwn(config.queues, key) ? config.queues[key] : undefined
    if (found !== undefined) return schema === undefined ? Effect.succeed(found) : typed(found, key, schema)
    const problem = Link.unknown("queue", String(key), Object.keys(config.queues))
    return Effect.fail(new ConfigFileError({ file: config.file, problems: [{ path: ["queues"], ...problem }] }))
  })

/** Returns the queue with a codec that checks bodies by the schema. */
const typed = <A, I>(
  found: ConfiguredQueue,
  key: string,
  schema: StandardSchemaV1<I, A>
): Effect.Effect<ConfiguredQueue<A, I>> => {
  if (found.codec !== Codec.json) {
    const remedy = "Write codec: json in the file or leave schema out"
    return Effect.die(OptionNames.error("queue", key, "a schema checks JSON, and the file gives another codec", remedy))
  }
  try {
    return Effect.succeed({ ...found, codec: Codec.standard<A, I>(schema) })
  } catch (error) {
    if (!(error instanceof RangeError)) throw error
    return Effect.die(OptionNames.error("queue", key, error.message.replace(/^[\w.]+: /, "")))
  }
}
