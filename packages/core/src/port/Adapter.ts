/** Adapters: an adapter package exports one, which makes a broker from a URL. */
import type * as Effect from "effect/Effect"
import type * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"
import type { Broker } from "./Broker.ts"
import type { BrokerError } from "./BrokerError.ts"
import type { Capabilities } from "./Capabilities.ts"
import type { ConfigurationError } from "../options/ConfigurationError.ts"
import type { Inspection, Plan } from "./Plan.ts"
import type { RetryPolicy } from "../policy/RetryPolicy.ts"

/** The adapter's own options as plain JSON, which the adapter checks. They beat those of the URL. */
export type Options = Readonly<Record<string, unknown>>

/** A queue to plan. Its dead-letter queues follow from its name and its policy. */
export interface PlanRequest {
  readonly queue: string
  /** The policy of the queue's consumer. */
  readonly retry: RetryPolicy
}

/** A connection for people who set up queues and operate them. Opening it creates nothing. */
export interface Operator {
  readonly capabilities: Capabilities
  /** Plans the queue for this server. */
  readonly plan: (request: PlanRequest) => Effect.Effect<Plan, ConfigurationError>
  /** Compares the plan with the server's objects. It changes nothing. */
  readonly inspect: (request: PlanRequest) => Effect.Effect<Inspection, BrokerError | ConfigurationError>
  /** Creates missing objects, as the first consumer would. It fails with `QueueMismatch` when one has other settings. */
  readonly create: (request: PlanRequest) => Effect.Effect<void, BrokerError | ConfigurationError>
  /**
   * Pauses a queue, or ends that: while it is paused, the broker takes messages for it and gives them to no consumer.
   * Returns why parts of the broker, each with its error, have stayed as they were. Default: the broker cannot do it.
   */
  readonly setPaused?:
    | ((
        queue: string,
        isPaused: boolean
      ) => Effect.Effect<ReadonlyArray<BrokerError>, BrokerError | ConfigurationError>)
    | undefined
}

/** The functions of an adapter behind `requeue check`, `plan`, `verify`, `create`, `pause` and `resume`. */
export interface Operations {
  /** Plans a queue without a connection. A plan that depends on the server's version is that of the newest. */
  readonly plan: (request: PlanRequest, url: URL, options?: Options) => Effect.Effect<Plan, ConfigurationError>
  /** Opens a connection that lasts as long as the scope. */
  readonly operate: (
    url: URL,
    options?: Options
  ) => Effect.Effect<Operator, BrokerError | ConfigurationError, Scope.Scope>
}

/** An adapter; its package exports it as `adapter`. */
export interface Adapter {
  /** The URL schemes that it serves, without the colon, for example `["amqp", "amqps"]`. */
  readonly schemes: ReadonlyArray<string>
  /**
   * Makes a broker from a URL of one of the schemes. An error names the wrong part of the URL, or the wrong option; it never
   * contains a password.
   */
  readonly layer: (url: URL, options?: Options) => Layer.Layer<Broker, BrokerError | ConfigurationError>
  /**
   * Whether its queues live in the process that opens them, so that no other one sees them: an operator is told so. Default:
   * false.
   */
  readonly inProcess?: boolean | undefined
  /** Plans and creates queues. Default: none, so that the broker's queues cannot be planned. */
  readonly operations?: Operations | undefined
}

/** Whether a value is an adapter, as far as its members tell. */
export const isAdapter = (value: unknown): value is Adapter => {
  const { layer, schemes }: { readonly layer?: unknown; readonly schemes?: unknown } = Object(value)
  return typeof layer === "function" && Array.isArray(schemes) && schemes.every((each) => typeof each === "string")
}
