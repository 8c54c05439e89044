/** How an adapter package makes itself known: by the URL schemes that it serves. */
import type * as Effect from "effect/Effect"
import type * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"
import type { Broker } from "./Broker.ts"
import type { BrokerError } from "./BrokerError.ts"
import type { Capabilities } from "./Capabilities.ts"
import type { ConfigurationError } from "../options/ConfigurationError.ts"
import type { Inspection, Plan } from "./Plan.ts"
import type { RetryPolicy } from "../policy/RetryPolicy.ts"

/** The adapter's own options, as plain JSON; from a config file they are unchecked. They beat those of the URL. */
export type Options = Readonly<Record<string, unknown>>

/** The queue that is planned, and the policy of its consumer; its dead-letter queues follow from both. */
export interface PlanRequest {
  readonly queue: string
  readonly retry: RetryPolicy
}

/** A connection for who sets queues up and looks after them. Opening it creates nothing. */
export interface Operator {
  readonly capabilities: Capabilities
  /** What the queue becomes on this very server. */
  readonly plan: (request: PlanRequest) => Effect.Effect<Plan, ConfigurationError>
  /** The plan beside what is there. Changes nothing. */
  readonly inspect: (request: PlanRequest) => Effect.Effect<Inspection, BrokerError | ConfigurationError>
  /** Makes what is missing, as the first consumer would. Fails with `QueueMismatch` where something is different. */
  readonly create: (request: PlanRequest) => Effect.Effect<void, BrokerError | ConfigurationError>
}

/** What `requeue check`, `plan`, `verify` and `create` need of an adapter. */
export interface Operations {
  /** A plan without a connection: where it depends on the server, that for the newest one. */
  readonly plan: (request: PlanRequest, url: URL, options?: Options) => Effect.Effect<Plan, ConfigurationError>
  readonly operate: (
    url: URL,
    options?: Options
  ) => Effect.Effect<Operator, BrokerError | ConfigurationError, Scope.Scope>
}

/** Every adapter package exports one as `adapter`. */
export interface Adapter {
  /** Without the colon, for example `["amqp", "amqps"]`. */
  readonly schemes: ReadonlyArray<string>
  /**
   * A broker for a URL of one of the schemes. Fails with the offending part of the URL, or the name of the offending
   * option, never with a password.
   */
  readonly layer: (url: URL, options?: Options) => Layer.Layer<Broker, BrokerError | ConfigurationError>
  /** Default: the broker's queues cannot be planned. */
  readonly operations?: Operations | undefined
}

/** Whether a value is an adapter, as far as its members tell. */
export const isAdapter = (value: unknown): value is Adapter => {
  const { layer, schemes }: { readonly layer?: unknown; readonly schemes?: unknown } = Object(value)
  return typeof layer === "function" && Array.isArray(schemes) && schemes.every((each) => typeof each === "string")
}
