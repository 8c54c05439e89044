/**
 * The driver that the adapter runs on: AWS' SDK, or what stands in for it in the context. It is taken once, when a client is
 * opened.
 */
import type { ConfigurationError, Connection } from "@requeue/core/port"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { Client, Settings } from "./client.ts"
import { reporting } from "./reporting.ts"

/** Opens clients. */
export interface Driver {
  /** Opens a client until the scope closes. */
  readonly connect: (settings: Settings) => Effect.Effect<Client, ConfigurationError.ConfigurationError, Scope.Scope>
}

/**
 * The driver of brokers that are made in this context. Default: `undefined`, for the SDK, which then loads when the first
 * client opens.
 */
export const Driver: Context.Reference<Driver | undefined> = Context.Reference<Driver | undefined>(
  "@requeue/adapter-sqs/Driver",
  { defaultValue: () => undefined }
)

/**
 * Makes a function that opens a client with the driver of the context, or with the SDK's. Every call then reports to `reach`
 * whether SQS is reachable.
 */
export const connecting =
  (sdk: Driver["connect"]) =>
  (
    settings: Settings,
    reach?: Connection.Tracker
  ): Effect.Effect<Client, ConfigurationError.ConfigurationError, Scope.Scope> =>
    Effect.flatMap(Driver, (driver) =>
      Effect.map((driver?.connect ?? sdk)(settings), (client) =>
        reach === undefined ? client : reporting(client, reach)
      )
    )
