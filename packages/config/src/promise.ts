/** Config files for programs without Effect. */
import { ConfigurationError } from "@requeue/core"
import { type ConnectOptions, type Requeue, connect } from "@requeue/core/promise"
import { OptionNames } from "@requeue/core/port"
import * as Effect from "effect/Effect"
import type { Json } from "./ConfigFile.ts"
import * as Configuration from "./Configuration.ts"
import type { ConfiguredQueue } from "./ConfiguredQueue.ts"

/** A loaded config file. */
export interface LoadedConfig {
  /**
   * Connects to a broker of the file, and to its store. Default: the file's default broker. `options` win over the file. Calls of the connection accept the key of a queue
   * of that broker as its name.
   */
  readonly connect: (broker?: string, options?: ConnectOptions) => Promise<Requeue>
  /**
   * Finds a queue of the file by its key, to send to and to consume from. `consume` takes options that its call leaves out
   * from the file. With `{ schema }`, the schema checks the bodies. Without it, their type is `A`, which nothing checks.
   *
   * @throws ConfigFileError when the file has no such queue, RangeError for a wrong option
   */
  // Any, because the file does not say what type the bodies have.
  readonly queue: <A = any, I = A>(name: string, options?: Configuration.QueueOptions<A, I>) => ConfiguredQueue<A, I>
}

/**
 * Loads `requeue.config.{ts,mts,js,mjs,json,yaml,yml}` from the working directory or one above it.
 *
 * Rejects with a `ConfigFileError` that lists every problem with its path in the file and its remedy, and with RangeError
 * for an option that is unknown or of the wrong kind.
 *
 * @example
 * ```ts no-run
 * import { loadConfig } from "@requeue/config"
 *
 * const { connect, queue } = await loadConfig()
 * const webhooks = queue("webhooks")
 *
 * await using requeue = await connect()
 * await requeue.consume(webhooks, {}, async (message) => console.log(message.body))
 * await requeue.send(webhooks, { url: "https://example.com" })
 * ```
 */
export const loadConfig = async (options: Configuration.Options = {}): Promise<LoadedConfig> => {
  OptionNames.check("loadConfig", options, Configuration.kinds)
  const config = await Effect.runPromise(Configuration.load(options))
  return {
    connect: async (broker, connectOptions) => {
      const name = broker ?? config.defaultBroker
      const all = withFile(connectOptions, config.connectOptions(broker))
      const connected = connect(config.alone(broker), all).catch((error: unknown) => {
        const isOfStore = error instanceof ConfigurationError.ConfigurationError && error.field === "store"
        throw isOfStore && name !== undefined ? config.locate(name, error) : error
      })
      return withQueues(await connected, config, name)
    },
    queue: (name, queueOptions) => Effect.runSync(Configuration.queue(config, name, queueOptions))
  }
}

/** Makes every call that takes a queue's name accept the key of a queue that is on this broker. */
const withQueues = (requeue: Requeue, config: Configuration.Configuration, broker = ""): Requeue => {
  const names = new Set(config.queuesOn(broker).map(({ name }) => name))
  const find = <Q>(queue: Q): Q => {
    const found = typeof queue === "string" && Object.hasOwn(config.queues, queue) ? config.queues[queue] : undefined
    return found !== undefined && names.has(found.name) ? (found as Q) : queue // Cast, because a definition may be in place of a name.
  }
  return {
    ...requeue,
    send: (queue, ...rest) => requeue.send(find(queue), ...rest),
    sendBatch: (queue, ...rest) => requeue.sendBatch(find(queue), ...rest),
    consume: (queue, ...rest) => requeue.consume(find(queue), ...rest),
    consumeBatch: (queue, ...rest) => requeue.consumeBatch(find(queue), ...rest),
    puller: (queue, ...rest) => requeue.puller(find(queue), ...rest),
    counts: (queue, ...rest) => {
      const found: unknown = find<unknown>(queue)
      return requeue.counts(typeof found === "object" ? (found as ConfiguredQueue).name : queue, ...rest) // Cast, as above.
    }
  }
}

/** Adds options of the file that the call does not give. */
const withFile = (options: ConnectOptions | undefined, file: ConnectOptions): ConnectOptions | undefined => {
  // `connect` refuses whatever else is given.
  const given: Readonly<Record<string, unknown>> = Object(options)
  const missing = Object.entries(file).filter(([name, value]) => value !== undefined && given[name] === undefined)
  return missing.length === 0 ? options : { ...options, ...Object.fromEntries(missing) }
}

/** Returns its argument, so the compiler checks a `requeue.config.ts`. */
export const defineConfig = (config: Json): Json => config
