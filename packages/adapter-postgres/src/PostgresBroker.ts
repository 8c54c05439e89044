/**
 * Requeue on tables of PostgreSQL.
 *
 * When to use: if your programs already use PostgreSQL. The rows that a handler writes there, its sends and its ack can be one
 * transaction.
 *
 * Delivery semantics: at least once. Each settlement is one statement: a retry or a dead letter replaces its original.
 */
import { type Adapter, Broker, type BrokerError, type ConfigurationError } from "@requeue/core/port"
import { AdapterOptions } from "@requeue/kit"
import type * as Config from "effect/Config"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"
import { open } from "./internal/broker.ts"
import { pg } from "./internal/client.ts"
import { operations } from "./internal/inspect/operations.ts"
import { decode, type Options } from "./PostgresOptions.ts"

/**
 * A broker that lives until the scope closes. It connects immediately, so a wrong option or password fails here.
 *
 * @example
 * ```ts no-run
 * import { PostgresBroker } from "@requeue/adapter-postgres"
 *
 * const broker = PostgresBroker.make({ url: "postgres://user:password@host/database" })
 * ```
 */
export const make = (
  options: Options = {}
): Effect.Effect<Broker.Service, BrokerError.BrokerError | ConfigurationError.ConfigurationError, Scope.Scope> =>
  Effect.flatMap(Effect.fromResult(decode(options)), (settings) => open(settings, pg))

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

/** Serves `postgres:` and `postgresql:` URLs. Options can be in the query: `postgres://host/database?schema=jobs`. */
export const adapter: Adapter.Adapter = {
  schemes: ["postgres", "postgresql"],
  layer: (url, options) => layer({ ...options, url }),
  operations
}
