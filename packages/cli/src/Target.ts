/** Finds the broker and the queues that a command acts on, from a config file or from `--url` and `--queue`. */
import { Configuration, type ConfigFileError } from "@requeue/config"
import { Adapters, Broker, ConfigurationError, RetryPolicy } from "@requeue/core"
import { type ConsumerOptions, KnownQueues, OptionNames } from "@requeue/core/port"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Flag from "effect/cli/Flag"
import { Output } from "./Output.ts"
import * as Policy from "./Policy.ts"
import { Process } from "./Process.ts"
import * as TextFlag from "./TextFlag.ts"
import { UsageError } from "./UsageError.ts"
import * as Waiting from "./Waiting.ts"

/** The flags of every command that acts on a broker. */
export const flags = {
  config: TextFlag.make("config").pipe(
    Flag.withMetavar("FILE"),
    Flag.withDescription("The config file. Default: requeue.config.{ts,js,mjs,json,yaml} here or in a folder above"),
    Flag.optional
  ),
  broker: TextFlag.make("broker").pipe(
    Flag.withMetavar("NAME"),
    Flag.withDescription("A broker of the config file. Default: the queue's, else the file's default broker"),
    Flag.optional
  ),
  url: TextFlag.make("url").pipe(
    Flag.withMetavar("URL"),
    Flag.withDescription("A broker's URL, instead of a config file"),
    Flag.optional
  ),
  adapter: TextFlag.make("adapter").pipe(
    Flag.withMetavar("PACKAGE"),
    Flag.withDescription("The package of the adapter for --url. Default: that of the URL's scheme"),
    Flag.optional
  ),
  queue: TextFlag.make("queue").pipe(
    Flag.withAlias("q"),
    Flag.withMetavar("NAME"),
    Flag.withDescription("The queue; can be repeated. Default: all queues that the config file has on the broker"),
    Flag.atLeast(0)
  )
}

/** The values of the target flags. */
export interface Flags {
  readonly config: Option.Option<string>
  readonly broker: Option.Option<string>
  readonly url: Option.Option<string>
  readonly adapter: Option.Option<string>
  readonly queue: ReadonlyArray<string>
}

/** A queue that a command acts on. */
export interface Queue {
  readonly name: string
  /** The options of the queue's consumers. */
  readonly options: ConsumerOptions.Options
}

/** A broker that is not yet connected. */
export interface Place {
  /** The broker's name in the config file, or the scheme of its URL. */
  readonly name: string
  readonly resolved: Adapters.Resolved
  /** The broker's queues in the config file; none without a file. */
  readonly configured: ReadonlyArray<Queue>
  /** Makes the broker's errors show its name in the config file. Without a file, returns the broker unchanged. */
  readonly rename: (broker: Broker.Service) => Broker.Service
  /** Adds to an adapter's error its place in the config file, if a config file is used. */
  readonly locate: (
    error: ConfigurationError.ConfigurationError
  ) => ConfigurationError.ConfigurationError | ConfigFileError
}

/** A broker, and at least one queue. */
export interface Target extends Place {
  readonly queues: ReadonlyArray<Queue>
}

const load = (file: Option.Option<string>) =>
  Effect.flatMap(Process, ({ cwd, env }) =>
    Configuration.load({ cwd: cwd(), environment: env, file: Option.getOrUndefined(file) })
  )

/** Loads the config file that the flags name; returns `undefined` if they have a URL instead. */
export const configuration = ({ adapter, broker, config, url }: Flags) => {
  if (Option.isNone(url) && Option.isSome(adapter)) {
    const remedy = "Give --url, or write the adapter into the config file"
    return Effect.fail(new UsageError({ detail: "--adapter requires --url", remedy }))
  }
  if (Option.isNone(url)) {
    return Effect.mapError(load(config), (error) =>
      error.file === Configuration.anyName
        ? new UsageError({
            detail: "no broker is given, and there is no config file",
            remedy: "Give --url or --config"
          })
        : error
    )
  }
  const given = Option.isSome(config) ? "--config" : Option.isSome(broker) ? "--broker" : undefined
  return given === undefined
    ? Effect.undefined
    : Effect.fail(new UsageError({ detail: `--url and ${given} do not go together`, remedy: "Give one of them" }))
}

/** Finds a broker of the config file, or that of `--url`. Does not connect. */
export const placeOf = (config: Configuration.Configuration | undefined, flags: Flags, broker: string | undefined) =>
  Effect.gen(function* () {
    if (config === undefined) {
      const [url, adapter] = [Option.getOrThrow(flags.url), Option.getOrUndefined(flags.adapter)]
      const resolved = yield* Adapters.find({ url, adapter })
      const locate = (error: ConfigurationError.ConfigurationError) => error
      return { name: resolved.scheme, resolved, configured: [], locate, rename: (own: Broker.Service) => own }
    }
    const resolved = yield* config.find(broker)
    const name = broker ?? config.defaultBroker!
    const locate = (error: ConfigurationError.ConfigurationError) => config.locate(name, error)
    const rename = (own: Broker.Service) => {
      const named = config.named(name, own)
      // The command's own errors use it. Nothing here needs the kind of the broker.
      return { ...named, capabilities: { ...named.capabilities, broker: name } }
    }
    return { name, resolved, configured: config.queuesOn(name), locate, rename }
  })

/** Finds the queues that the flags name in the config file, and their broker. */
const queuesOf = Effect.fnUntraced(function* (config: Configuration.Configuration, flags: Flags) {
  const wanted = Option.getOrUndefined(flags.broker)
  const all = Object.entries(config.queues)
  const named = flags.queue.map((name) => ({
    name,
    found: all.find(([key, queue]) => [key, queue.name].includes(name))
  }))
  const unknown = named.find(({ found }) => found === undefined)
  if (unknown !== undefined) {
    const remedy = OptionNames.remedy(unknown.name, Object.keys(config.queues))
    return yield* new UsageError({ detail: `--queue: ${config.file} has no queue named ${unknown.name}`, remedy })
  }
  const found = named.flatMap(({ found }) => (found === undefined ? [] : [found[1]]))
  // Flags that name both the broker and the queues win over the config file.
  if (wanted !== undefined && found.length > 0) return { broker: wanted, queues: found }
  const broker = wanted ?? found[0]?.broker ?? config.defaultBroker
  const here =
    found.length > 0 || broker === undefined
      ? found.filter((queue) => queue.broker === broker)
      : config.queuesOn(broker)
  if (here.length > 0 && here.length >= found.length) return { broker, queues: here }
  return yield* nothing(config, found, broker)
})

/** Returns the error if the flags do not name queues of one broker. */
const nothing = (
  { brokers, file, queues }: Configuration.Configuration,
  found: ReadonlyArray<{ readonly broker: string }>,
  broker: string | undefined
): UsageError => {
  const among = (names: Iterable<string>) => [...new Set(names)].join(", ")
  const all = Object.values(queues)
  if (all.length === 0)
    return new UsageError({ detail: `${file} has no queues`, remedy: "Add queues to the file, under the key queues" })
  if (found.length > 0) {
    const detail = `--queue: these queues are on several brokers: ${among(found.map((queue) => queue.broker))}`
    return new UsageError({ detail, remedy: "Give queues of one broker, or --broker as well" })
  }
  const withQueues = among(all.map((queue) => queue.broker))
  if (broker === undefined) {
    return new UsageError({
      detail: `${file} has no default broker`,
      remedy: `Give --broker with one of ${withQueues}`
    })
  }
  return new UsageError({
    detail: `${file} has no queues on broker ${broker}, only on ${withQueues}`,
    remedy: brokers.includes(broker)
      ? `Give --queue with one of ${among(Object.keys(queues))} to find it on ${broker}, or another --broker`
      : OptionNames.remedy(broker, brokers)
  })
}

/** Finds the broker that the flags name, for commands that take the name of any queue. Does not connect. */
export const place = (flags: Flags) =>
  Effect.gen(function* () {
    const config = yield* configuration(flags)
    const [first] = flags.queue
    const queue = Object.values(config?.queues ?? {}).find(({ name }) => name === first)
    const place: Place = yield* placeOf(
      config,
      flags,
      Option.getOrElse(flags.broker, () => queue?.broker)
    )
    return place
  })

/**
 * Finds the broker and the queues that the flags name. `policy` replaces the retry policy of each queue. Does not connect.
 */
export const resolve = (flags: Flags, policy: Option.Option<string> = Option.none()) =>
  Effect.gen(function* () {
    const config = yield* configuration(flags)
    const retry = Option.isSome(policy) ? yield* Policy.decode(policy.value, config?.policies ?? {}) : undefined
    if (config === undefined && flags.queue.length === 0) {
      return yield* new UsageError({ detail: "no queue is given", remedy: "Give --queue NAME" })
    }
    const { broker, queues } =
      config === undefined
        ? { broker: undefined, queues: flags.queue.map((name) => ({ name, options: {} })) }
        : yield* queuesOf(config, flags)
    const found = yield* placeOf(config, flags, broker)
    const target: Target = {
      ...found,
      // A policy of the command line has no place in the file.
      locate: (error) => (retry !== undefined && /^retry\b/.test(error.field) ? error : found.locate(error)),
      queues: queues.map(({ name, options }) => ({ name, options: withRetry(options, retry) }))
    }
    return target
  })

const withRetry = (
  options: ConsumerOptions.Options,
  retry: RetryPolicy.RetryPolicy | undefined
): ConsumerOptions.Options => (retry === undefined ? options : { ...options, retry })

/**
 * Returns the consumer options of a queue in the config file; without a queue, only the given policy. Needs no broker.
 */
export const policies = (
  file: Option.Option<string>,
  queue: Option.Option<string>,
  policy: Option.Option<string>
): Effect.Effect<Queue, ConfigFileError | UsageError, Process> =>
  Effect.gen(function* () {
    if (Option.isNone(queue) && Option.isNone(policy)) {
      return yield* new UsageError({ detail: "no policy is given", remedy: "Give --policy or --queue" })
    }
    const isAlone = Option.isNone(queue) && Option.isNone(file) && Option.exists(policy, Policy.isSelfContained)
    const config = isAlone ? undefined : yield* load(file)
    const retry = Option.isSome(policy) ? yield* Policy.decode(policy.value, config?.policies ?? {}) : undefined
    if (Option.isNone(queue) || config === undefined) return { name: "<queue>", options: withRetry({}, retry) }
    const { name, options } = yield* Configuration.queue(config, queue.value)
    return { name, options: withRetry(options, retry) }
  })

/** Prints a note if each process has its own broker, as with `memory:`, because this process then has an empty one. */
const tellPlace = ({ adapter, scheme }: Adapters.Resolved) =>
  Effect.flatMap(Output, ({ note }) =>
    adapter.inProcess === true
      ? note(`${scheme}: each process has its own broker, and this one is empty. Inspect it in your program`)
      : Effect.void
  )

/** Shows `connecting to` and the broker's name while work runs that connects to the broker. */
export const connecting = ({ name }: Place) => Waiting.telling(() => `connecting to ${name}`)

/** Makes the layer of a connected broker. The layer knows the policies of the broker's queues in the config file. */
export const layer = (place: Place) => {
  const { configured, locate, rename, resolved } = place
  return Layer.effect(
    Broker.Broker,
    Effect.map(Broker.Broker, (own) => {
      const broker = rename(own)
      for (const { name, options } of configured) KnownQueues.add(broker, name, options.retry ?? RetryPolicy.make())
      return broker
    })
  ).pipe(
    Layer.provide(Layer.effectContext(connecting(place)(Layer.build(Adapters.layerOf(resolved))))),
    Layer.provide(Layer.effectDiscard(tellPlace(resolved))),
    Layer.catch((error) =>
      Layer.effect(
        Broker.Broker,
        Effect.fail(error instanceof ConfigurationError.ConfigurationError ? locate(error) : error)
      )
    )
  )
}
