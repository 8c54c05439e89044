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

/** The adapter's own options as plain JSON, which the adapter checks. They override the options in the URL. */
export type Options = Readonly<Record<string, unknown>>

/** The names of the options of `connect`. The error for an unknown adapter option uses them to recognise a misplaced option. */
export const connectOptions = [
  "publishTimeout",
  "maxPending",
  "adapters",
  "logger",
  "logLevel",
  "waitForBroker",
  "telemetry",
  "store",
  "inboxRetention",
  "storeNamespace"
] as const

/** A queue to plan. Its dead-letter queues follow from its name and policy. */
export interface PlanRequest {
  readonly queue: string
  /** The policy of the queue's consumer. */
  readonly retry: RetryPolicy
}

/** A connection for operators who create and inspect queues. Opening it creates nothing. */
export interface Operator {
  readonly capabilities: Capabilities
  /** Plans the queue for this server. */
  readonly plan: (request: PlanRequest) => Effect.Effect<Plan, ConfigurationError>
  /** Compares the plan with the server's objects. It changes nothing. */
  readonly inspect: (request: PlanRequest) => Effect.Effect<Inspection, BrokerError | ConfigurationError>
  /**
   * Creates missing objects, as the first consumer would. Fails with `QueueMismatch` if an existing object has other
   * settings.
   */
  readonly create: (request: PlanRequest) => Effect.Effect<void, BrokerError | ConfigurationError>
  /**
   * Pauses or resumes a queue: while it is paused, the broker accepts messages for it and delivers none. Returns the
   * errors of those parts of the broker that did not change. Default: unsupported.
   */
  readonly setPaused?:
    | ((
        queue: string,
        isPaused: boolean
      ) => Effect.Effect<ReadonlyArray<BrokerError>, BrokerError | ConfigurationError>)
    | undefined
}

/** The functions of an adapter for `requeue check`, `plan`, `verify`, `create`, `pause` and `resume`. */
export interface Operations {
  /** Plans a queue without a connection, for the newest server version if the plan depends on it. */
  readonly plan: (request: PlanRequest, url: URL, options?: Options) => Effect.Effect<Plan, ConfigurationError>
  /** Opens a connection that lasts as long as the scope. */
  readonly operate: (
    url: URL,
    options?: Options
  ) => Effect.Effect<Operator, BrokerError | ConfigurationError, Scope.Scope>
}

/** An adapter; its package exports it as `adapter`. */
export interface Adapter {
  /** The URL schemes that the adapter supports, without the colon, for example `["amqp", "amqps"]`. */
  readonly schemes: ReadonlyArray<string>
  /**
   * Makes a broker from a URL with one of the adapter's schemes. Errors name the wrong part or option, and contain no
   * password.
   */
  readonly layer: (url: URL, options?: Options) => Layer.Layer<Broker, BrokerError | ConfigurationError>
  /**
   * Whether the adapter's queues exist only in the process that opens them. The commands for operators then show a
   * remark. Default: false.
   */
  readonly inProcess?: boolean | undefined
  /** Plans and creates queues. Default: unsupported. */
  readonly operations?: Operations | undefined
}

/** Whether a value has the members of an adapter. */
export const isAdapter = (value: unknown): value is Adapter => {
  const { layer, schemes }: { readonly layer?: unknown; readonly schemes?: unknown } = Object(value)
  return typeof layer === "function" && Array.isArray(schemes) && schemes.every((each) => typeof each === "string")
}
