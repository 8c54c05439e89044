/** Config files for programs without Effect. */
import { type ConnectOptions, type Requeue, connect } from "@requeue/core/promise"
import { OptionNames } from "@requeue/core/port"
import * as Effect from "effect/Effect"
import type { Json } from "./ConfigFile.ts"
import * as Configuration from "./Configuration.ts"
import type { ConfiguredQueue } from "./ConfiguredQueue.ts"

/** A loaded config file. */
export interface LoadedConfig {
  /** Connects to a broker of the file. Default: the file's default broker. */
  readonly connect: (broker?: string, options?: ConnectOptions) => Promise<Requeue>
  /**
   * Finds a queue of the file by its key, to send to and to consume from. `consume` uses the file's options for those that
   * its call leaves out. With `{ schema }`, the schema checks the bodies; without it, `A` is their type, which nothing
   * checks.
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
    connect: (broker, connectOptions) =>
      connect(config.layer(broker), withWait(connectOptions, config.waitForBroker(broker))),
    queue: (name, queueOptions) => Effect.runSync(Configuration.queue(config, name, queueOptions))
  }
}

/** Adds the file's `waitForBroker`, unless the call gives one. */
const withWait = (
  options: ConnectOptions | undefined,
  waitForBroker: ConnectOptions["waitForBroker"]
): ConnectOptions | undefined =>
  // `connect` refuses whatever else is given.
  waitForBroker === undefined || (options !== undefined && options?.waitForBroker !== undefined)
    ? options
    : { ...options, waitForBroker }

/** Returns its argument, so the compiler checks a `requeue.config.ts`. */
export const defineConfig = (config: Json): Json => config
