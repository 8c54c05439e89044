/**
 * The port: an adapter implements {@link Service}. It fits push with credit (RabbitMQ, NSQ), polling with leases (SQS),
 * brokers without headers, and batch settlement.
 *
 * Every adapter MUST keep these rules:
 *
 * 1. `publish` succeeds only when the broker has confirmed every message and routed each of them.
 * 2. A settlement that publishes a copy (a delayed retry, a dead letter) settles the original only after the broker has
 *    confirmed the copy.
 * 3. A delivery is settled on the connection that delivered it, or not at all. A second settlement of the same delivery is
 *    a mistake of the caller, and MUST NOT reach the broker.
 * 4. `settle` never fails as a whole: it returns the deliveries that it could not settle. Such a delivery stays with the
 *    broker, unsettled. The core settles it again (it releases or retries it), or the broker delivers the message again
 *    once the connection or the lease is lost.
 * 5. At most `credit` deliveries are unsettled at any time. `credit(0)` takes effect before any settlement that is given
 *    after it. Deliveries that were on their way already may still arrive; the core buffers them.
 * 6. A lost connection is made again without the core's help: the adapter declares again what it needs, and resumes with
 *    the last credit. Where deliveries end with their connection, it calls `onReconnect`.
 * 7. `publish`, `settle` and `extend` end in bounded time. When the broker does not answer, `publish` fails, and the others
 *    return the deliveries with an error.
 * 8. No message is delivered before it is due. Where the broker cannot keep it for so long, the delivery has
 *    `metadata.notBefore`, so that the core can give it back.
 * 9. `connection` is `down` from the moment at which a loss is noticed until the broker can be reached again. Every loss
 *    changes `since`. The call sends nothing and returns at once.
 */
import * as Context from "effect/Context"
import type * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { BrokerError } from "./BrokerError.ts"
import type { Capabilities } from "./Capabilities.ts"
import type { Connection } from "./Connection.ts"
import type { Delivery } from "../message/Delivery.ts"
import type { Outgoing } from "../message/Outgoing.ts"
import type { RetryPolicy } from "../policy/RetryPolicy.ts"
import type { Settlement } from "../message/Settlement.ts"

/** The options of a subscription. */
export interface SubscribeOptions {
  /** The queue to consume. */
  readonly queue: string
  /** The policy that will decide about failures; adapters plan their native objects from it. */
  readonly retry: RetryPolicy
  /** The queues to which dead letters may go. They must exist, and be bound, before the first delivery. */
  readonly deadLetterQueues: ReadonlyArray<string>
  /** The highest credit that this consumer will ever give. */
  readonly maxCredit: number
  /** Called once for each delivery. It does not throw, and returns at once. */
  readonly onDelivery: (delivery: Delivery) => void
  /**
   * Called after a lost connection was made again, before its first delivery. Unsettled deliveries of the lost connection
   * are gone: `isGone` tells which these are, and is for adapters with several connections. Default: all are gone.
   */
  readonly onReconnect: (isGone?: (delivery: Delivery) => boolean) => void
}

/** One settlement for one delivery. */
export interface SettleRequest {
  readonly delivery: Delivery
  readonly settlement: Settlement
}

/** A delivery that could not be settled. */
export interface SettleFailure {
  readonly delivery: Delivery
  readonly error: BrokerError
}

/** A running subscription. */
export interface Subscription {
  /** Sets the number of deliveries that may be unsettled at any time. It is 0 until the first call. */
  readonly credit: (limit: number) => void
  /** Settles deliveries, and returns those that it could not settle. */
  readonly settle: (requests: ReadonlyArray<SettleRequest>) => Effect.Effect<ReadonlyArray<SettleFailure>>
  /**
   * Renews the leases of these deliveries, and returns those whose lease it could not renew. Without leases it does
   * nothing. The core never calls it for a delivery that is being settled.
   */
  readonly extend: (deliveries: ReadonlyArray<Delivery>) => Effect.Effect<ReadonlyArray<SettleFailure>>
}

/** The number of messages in a queue, by their state; `undefined` where the broker cannot tell. */
export interface Counts {
  /** Messages that wait for a consumer. */
  readonly ready: number | undefined
  /** Messages that are delivered and not settled. */
  readonly inFlight: number | undefined
  /** Messages that wait for their delay to pass. */
  readonly delayed: number | undefined
}

/** Functions for operators. Dead-letter queues are queues like any other. */
export interface Admin {
  readonly counts: (queue: string) => Effect.Effect<Counts, BrokerError>
  /** Up to `limit` waiting messages, oldest first, as the next consumer would see them. */
  readonly peek: (queue: string, limit: number) => Effect.Effect<ReadonlyArray<Delivery>, BrokerError>
  /** Removes all waiting messages, and returns their number. */
  readonly purge: (queue: string) => Effect.Effect<number, BrokerError>
}

/** A broker, as the core uses it. */
export interface Service {
  readonly capabilities: Capabilities
  /** The connection as the adapter saw it last. */
  readonly connection: () => Connection
  /** Publishes all messages, or fails; after a failure, any of them may have been published. */
  readonly publish: (messages: ReadonlyArray<Outgoing>) => Effect.Effect<void, BrokerError>
  /** Delivers messages until the scope closes, which gives unsettled ones back. */
  readonly subscribe: (options: SubscribeOptions) => Effect.Effect<Subscription, BrokerError, Scope.Scope>
  readonly admin: Admin
}

/**
 * The broker on which a program runs, as a service of Effect; adapters make Layers of it.
 *
 * @example
 * ```ts
 * import { MemoryBroker } from "@requeue/adapter-memory"
 * import { Broker } from "@requeue/core"
 * import { Effect } from "effect"
 *
 * const name = Effect.map(Broker.Broker, ({ capabilities }) => capabilities.broker)
 * await Effect.runPromise(Effect.provide(name, MemoryBroker.layer())) // => "memory"
 * ```
 */
export class Broker extends Context.Service<Broker, Service>()("@requeue/core/Broker") {}
