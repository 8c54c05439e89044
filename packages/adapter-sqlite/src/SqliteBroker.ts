/**
 * Requeue on a file of SQLite: durable queues for the processes of one machine, without a server.
 *
 * When to use: for work that must survive its process, on one machine. Handlers that also write to a database can use the same
 * file. For several machines, use another broker.
 *
 * Delivery semantics: at least once. Each settlement is one transaction: a retry or a dead letter replaces its original.
 */
import { type Adapter, Broker, type BrokerError, type ConfigurationError } from "@requeue/core/port"
import { AdapterOptions } from "@requeue/kit"
import type * as Config from "effect/Config"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"
import { decode, type Options } from "./SqliteOptions.ts"
import { open } from "./internal/broker.ts"
import { Driver } from "./internal/client.ts"
import { operations } from "./internal/inspect/operations.ts"

/**
 * A broker that lives until the scope closes. It opens the file at once: a wrong option or path is an error now.
 *
 * @example
 * ```ts
 * import { SqliteBroker } from "@requeue/adapter-sqlite"
 * import * as Effect from "effect/Effect"
 *
 * const program = Effect.map(SqliteBroker.make({ url: "sqlite::memory:" }), ({ capabilities }) => capabilities.broker)
 * await Effect.runPromise(Effect.scoped(program)) // => "sqlite"
 * ```
 */
export const make = (
  options: Options = {}
): Effect.Effect<Broker.Service, BrokerError.BrokerError | ConfigurationError.ConfigurationError, Scope.Scope> =>
  Effect.flatMap(Effect.fromResult(decode(options)), (settings) =>
    Effect.flatMap(Driver, (driver) => Effect.map(open(settings, driver), ({ broker }) => broker))
  )

/** The broker as a Layer. */
export const layer = (
  options: Options = {}
): Layer.Layer<Broker.Broker, BrokerError.BrokerError | ConfigurationError.ConfigurationError> =>
  Layer.effect(Broker.Broker, make(options))

/** The broker as a Layer whose options come from Effect's Config. */
export const layerConfig = (
  options: Config.Wrap<Options>
): Layer.Layer<Broker.Broker, BrokerError.BrokerError | ConfigurationError.ConfigurationError | Config.ConfigError> =>
  Layer.effect(Broker.Broker, AdapterOptions.fromConfig(options, make))

/** Serves `sqlite:` URLs. Every option can be in the query: `sqlite:./queue.db?durability=normal`. */
export const adapter: Adapter.Adapter = {
  schemes: ["sqlite"],
  layer: (url, options) => layer({ ...options, url }),
  operations
}
