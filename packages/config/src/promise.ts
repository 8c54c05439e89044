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
   * Finds a queue of the file by its key: to send to, and to consume from with its `options`. `A` is the type of its
   * bodies, which nothing checks.
   *
   * @throws ConfigFileError when the file has no such queue
   */
  readonly queue: <A = any>(name: string) => ConfiguredQueue<A> // any: the file does not say what type the bodies have
}

/**
 * Loads `requeue.config.{ts,mts,js,mjs,json,yaml,yml}` from the working directory or one above it.
 *
 * Rejects with a `ConfigFileError`, which tells everything that is wrong, with its path in the file and its remedy; and
 * with RangeError for an option that is unknown or of another kind.
 *
 * @example
 * ```ts no-run
 * import { loadConfig } from "@requeue/config"
 *
 * const { connect, queue } = await loadConfig()
 * const webhooks = queue("webhooks")
 *
 * await using requeue = await connect()
 * await requeue.consume(webhooks, webhooks.options, async (message) => console.log(message.body))
 * await requeue.send(webhooks, { url: "https://example.com" })
 * ```
 */
export const loadConfig = async (options: Configuration.Options = {}): Promise<LoadedConfig> => {
  OptionNames.check("loadConfig", options, Configuration.kinds)
  const config = await Effect.runPromise(Configuration.load(options))
  return {
    connect: (broker, connectOptions) =>
      connect(config.layer(broker), withWait(connectOptions, config.waitForBroker(broker))),
    queue: (name) => Effect.runSync(Configuration.queue(config, name))
  }
}

/** Adds the time that the file gives the broker, unless the call gives one. */
const withWait = (
  options: ConnectOptions | undefined,
  waitForBroker: ConnectOptions["waitForBroker"]
): ConnectOptions | undefined =>
  // Whatever else is given is for `connect` to refuse.
  waitForBroker === undefined || (options !== undefined && options?.waitForBroker !== undefined)
    ? options
    : { ...options, waitForBroker }

/** Answers its argument: for a `requeue.config.ts` whose types are checked. */
export const defineConfig = (config: Json): Json => config
