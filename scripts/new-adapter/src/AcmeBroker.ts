/**
 * Requeue on Acme.
 *
 * Delivery semantics: at least once. A retry's copy or a dead letter is confirmed before its original is removed.
 */
import {
  type Adapter,
  Broker,
  type BrokerError,
  type ConfigurationError,
  Connection,
  Deadlines,
  Timers
} from "@requeue/core/port"
import { AdapterOptions } from "@requeue/kit"
import * as Clock from "effect/Clock"
import type * as Config from "effect/Config"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"
import { decode, type Options, type Settings } from "./AcmeOptions.ts"
import * as Capabilities from "./internal/capabilities.ts"
import { connect } from "./internal/client.ts"
import { subscribe } from "./internal/consume/subscribe.ts"
import * as Admin from "./internal/inspect/admin.ts"
import { operations } from "./internal/inspect/operations.ts"
import { publish } from "./internal/publish/publisher.ts"

const build = Effect.fnUntraced(function* (settings: Settings) {
  const clock = yield* Clock.Clock
  const now = () => clock.currentTimeMillisUnsafe()
  const connection = Connection.track("up", now)
  const client = yield* connect(settings, connection.set)
  const deadlines = Deadlines.make(yield* Timers.make, settings.timeout, true)
  const tools = { client, deadlines, settings, now }
  const service: Broker.Service = {
    capabilities: Capabilities.capabilities,
    connection: connection.current,
    publish: (messages) => publish(messages, tools),
    subscribe: (options) => subscribe(options, tools),
    admin: Admin.make(tools)
  }
  return service
})

/**
 * A broker that lives until the scope closes. It connects at once: a wrong option or address is an error now.
 *
 * @example
 * ```ts
 * import { AcmeBroker } from "@requeue/adapter-acme"
 * import * as Effect from "effect/Effect"
 *
 * const program = Effect.scoped(
 *   Effect.map(AcmeBroker.make({ url: "acme://localhost" }), ({ capabilities }) => capabilities.lease)
 * )
 * ```
 */
export const make = (
  options: Options = {}
): Effect.Effect<Broker.Service, BrokerError.BrokerError | ConfigurationError.ConfigurationError, Scope.Scope> =>
  Effect.flatMap(Effect.fromResult(decode(options)), build)

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

/** Serves `acme:` URLs. Every option can be in the query: `acme://localhost?timeout=5000`. */
export const adapter: Adapter.Adapter = {
  schemes: ["acme"],
  layer: (url, options) => layer({ ...options, url }),
  operations
}
