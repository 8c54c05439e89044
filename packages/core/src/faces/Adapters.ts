/**
 * The adapter of a broker's URL, loaded by the URL's scheme. Only that one is imported; a package that is missing is an
 * error that says how to install it.
 *
 * When to use: where the broker is chosen by configuration. A program that has one broker for good imports its adapter.
 */
import type * as Config from "effect/Config"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import type { Options } from "../port/Adapter.ts"
import { Broker } from "../port/Broker.ts"
import type { BrokerError } from "../port/BrokerError.ts"
import { ConfigurationError } from "../options/ConfigurationError.ts"
import { type Resolved, resolve } from "./internal/resolve.ts"

export type { Resolved }

/** A broker's URL, or an object of it and the adapter's own options: `{ url: "amqp://localhost", queueType: "classic" }`. */
export type Address = string | URL | Redacted.Redacted | ({ readonly url: string | URL | Redacted.Redacted } & Options)

/** The adapter that serves an address. Fails when there is none, or when its package is not installed. */
export const find = (address: Address): Effect.Effect<Resolved, ConfigurationError> =>
  Effect.tryPromise({ try: () => resolve(address), catch: (error) => error }).pipe(
    Effect.catch((error) => (error instanceof ConfigurationError ? Effect.fail(error) : Effect.die(error)))
  )

/** The broker of an address that has been resolved. */
export const layerOf = ({ adapter, address }: Resolved): Layer.Layer<Broker, BrokerError | ConfigurationError> => {
  const { options, url } = Redacted.value(address)
  return adapter.layer(url, options)
}

/**
 * The broker of an address.
 *
 * @example
 * ```ts
 * import { Adapters, Broker } from "@requeue/core"
 * import * as Effect from "effect/Effect"
 *
 * const name = Broker.Broker.use(({ capabilities }) => Effect.succeed(capabilities.broker))
 * await Effect.runPromise(Effect.provide(name, Adapters.layer("memory:"))) // => "memory"
 * ```
 */
export const layer = (address: Address): Layer.Layer<Broker, BrokerError | ConfigurationError> =>
  Layer.unwrap(Effect.map(find(address), layerOf))

/**
 * The broker of an address that comes from Effect's Config, for example `Config.Redacted("BROKER_URL")`.
 */
export const layerConfig = (
  address: Config.Config<Address>
): Layer.Layer<Broker, BrokerError | ConfigurationError | Config.ConfigError> =>
  Layer.unwrap(Effect.map(address, layer))
