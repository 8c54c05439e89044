/**
 * Finds the adapter for a broker's address, in this order:
 *
 * 1. the `adapter` of the address: an adapter, or the name of a package that exports one as `adapter`;
 * 2. one of the given adapters, if it serves the URL's scheme;
 * 3. the package of the scheme, such as `@requeue/adapter-rabbitmq` for `amqp:`. For schemes that Requeue has no
 *    adapter for, the package is named like `requeue-adapter-redis` for `redis:`.
 *
 * The adapter's `schemes` must list the URL's scheme. Only the used adapter is imported. An adapter that you pass is
 * not imported again, so a bundle can contain it.
 *
 * When to use: if configuration chooses the broker. A program with a fixed broker imports its adapter.
 */
import type * as Config from "effect/Config"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import type * as Scope from "effect/Scope"
import type { Adapter, Operator, Options, PlanRequest } from "../port/Adapter.ts"
import type { Plan } from "../port/Plan.ts"
import { summarize } from "../policy/Failure.ts"
import { Broker } from "../port/Broker.ts"
import type { BrokerError } from "../port/BrokerError.ts"
import { ConfigurationError } from "../options/ConfigurationError.ts"
import { type Resolved, resolve, type Sources } from "./internal/resolve.ts"

export type { Resolved, Sources }

/** A broker's URL. A `Redacted` URL keeps its password out of logs. */
export type Url = string | URL | Redacted.Redacted

/** A URL, or an object with the adapter's options: `{ url: "redis://host", adapter: "@acme/requeue-redis", db: 2 }`. */
export type Address = Url | ({ readonly url: Url; readonly adapter?: string | Adapter | undefined } & Options)

/**
 * Finds the adapter of an address, without connecting.
 *
 * Fails with `ConfigurationError` if there is no adapter, or if the adapter is not installed, cannot be imported, or
 * does not serve the URL's scheme.
 */
export const find = (address: Address, sources?: Sources): Effect.Effect<Resolved, ConfigurationError> =>
  Effect.tryPromise({ try: () => resolve(address, sources), catch: (error) => error }).pipe(
    Effect.catch((error) => (error instanceof ConfigurationError ? Effect.fail(error) : Effect.die(error)))
  )

/** Makes the broker of a resolved address. Fails with `ConfigurationError` if the adapter throws or returns no Layer. */
export const layerOf = ({ adapter, address }: Resolved): Layer.Layer<Broker, BrokerError | ConfigurationError> => {
  const { options, url } = Redacted.value(address)
  const made = Effect.try({
    try: () => {
      const layer = adapter.layer(url, options)
      const isLayer: boolean = Layer.isLayer(layer)
      if (!isLayer) throw new Error("its layer function did not return a Layer")
      return layer
    },
    catch: (cause) =>
      new ConfigurationError({
        field: "adapter",
        detail: `the adapter failed: ${summarize(cause).message}`,
        remedy: "Report this to the adapter's authors",
        cause
      })
  })
  return Layer.unwrap(made)
}

/** The operations of an adapter on the queues of a resolved address. */
export interface Operations {
  /** Plans a queue without a connection; see `Adapter.Operations`. */
  readonly plan: (request: PlanRequest) => Effect.Effect<Plan, ConfigurationError>
  /** Connects, and returns an operator that works until the scope closes. */
  readonly operate: Effect.Effect<Operator, BrokerError | ConfigurationError, Scope.Scope>
}

/** Returns the operations of a resolved address. Fails if the adapter has none. */
export const operationsOf = ({ adapter, address, scheme }: Resolved): Effect.Effect<Operations, ConfigurationError> => {
  const { operations } = adapter
  const { options, url } = Redacted.value(address)
  return operations === undefined
    ? Effect.fail(
        new ConfigurationError({
          field: "adapter",
          detail: `the adapter for ${scheme}: URLs cannot plan or inspect queues`,
          remedy: "Install a newer version of the adapter"
        })
      )
    : Effect.succeed({
        plan: (request) => operations.plan(request, url, options),
        operate: operations.operate(url, options)
      })
}

/**
 * Makes the broker of an address, with the adapter that {@link find} finds.
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
export const layer = (address: Address, sources?: Sources): Layer.Layer<Broker, BrokerError | ConfigurationError> =>
  Layer.unwrap(Effect.map(find(address, sources), layerOf))

/** Makes the broker of an address from Effect's Config, for example `Config.Redacted("BROKER_URL")`. */
export const layerConfig = (
  address: Config.Config<Address>,
  sources?: Sources
): Layer.Layer<Broker, BrokerError | ConfigurationError | Config.ConfigError> =>
  Layer.unwrap(Effect.map(address, (given) => layer(given, sources)))
