/**
 * The port: what an adapter must offer. Small on purpose. It fits push with credit (RabbitMQ, NSQ), polling with leases
 * (SQS), brokers without headers, and batch settlement.
 *
 * MUST, for every adapter:
 *
 * 1. `publish` resolves only when the broker has confirmed every message and each was routable.
 * 2. A settlement that makes a copy (a delayed retry, a dead letter) settles the original only after the copy's
 *    confirmation.
 * 3. A delivery is settled on the connection that delivered it, or not at all. Settling it again is an error of the
 *    caller and MUST NOT reach the broker.
 * 4. `settle` never fails as a whole: it answers with the deliveries that could not be settled. A delivery whose
 *    settlement failed stays with the broker and stays unsettled; the core releases or retries it, and a lost
 *    connection or lease brings it back.
 * 5. At most `credit` deliveries are unsettled at any time. `credit(0)` takes effect before any settlement that is
 *    given later. Deliveries that were already on their way may still arrive; the core buffers them.
 * 6. Connections recover by themselves, declare what they need again, and resume with the last credit; `onReconnect`
 *    tells the core where deliveries end with their connection.
 * 7. `publish`, `settle` and `extend` end in bounded time, with an error where the broker does not answer.
 * 8. Nothing is delivered before its time, or it carries `metadata.notBefore` so that the core can give it back.
 * 9. `connection` says `down` from the moment a loss is noticed until the broker can be reached again, and every loss
 *    moves `since`. It sends nothing and answers at once.
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

/** What a consumer wants from its broker. */
export interface SubscribeOptions {
  readonly queue: string
  /** The policy that will decide; adapters plan their native objects from it. */
  readonly retry: RetryPolicy
  /** The queues that dead letters may go to. They must exist, and be bound, before the first delivery. */
  readonly deadLetterQueues: ReadonlyArray<string>
  /** The highest credit that this consumer will ever give. */
  readonly maxCredit: number
  /** Called once for each delivery. It does not throw and returns at once. */
  readonly onDelivery: (delivery: Delivery) => void
  /**
   * Called after the connection was lost and made again, before the first delivery of the new one; unsettled deliveries
   * of the old one are gone. An adapter with several connections says which deliveries were of the one that was lost.
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

export interface Subscription {
  /** Sets how many deliveries may be unsettled at any time. Starts at 0. */
  readonly credit: (limit: number) => void
  readonly settle: (requests: ReadonlyArray<SettleRequest>) => Effect.Effect<ReadonlyArray<SettleFailure>>
  /**
   * Renews the leases of these deliveries, for brokers that have leases. The core never calls it for a delivery that is
   * being settled.
   */
  readonly extend: (deliveries: ReadonlyArray<Delivery>) => Effect.Effect<ReadonlyArray<SettleFailure>>
}

/** A queue's numbers; `undefined` where the broker cannot tell. */
export interface Counts {
  readonly ready: number | undefined
  readonly inFlight: number | undefined
  readonly delayed: number | undefined
}

/** What operators need; dead-letter queues are queues like any other. */
export interface Admin {
  readonly counts: (queue: string) => Effect.Effect<Counts, BrokerError>
  /** Up to `limit` waiting messages, oldest first, as the next consumer would see them. */
  readonly peek: (queue: string, limit: number) => Effect.Effect<ReadonlyArray<Delivery>, BrokerError>
  /** Removes all waiting messages and answers how many. */
  readonly purge: (queue: string) => Effect.Effect<number, BrokerError>
}

export interface Service {
  readonly capabilities: Capabilities
  readonly connection: () => Connection
  /** Publishes all, or fails; after a failure any part of them may have been published. */
  readonly publish: (messages: ReadonlyArray<Outgoing>) => Effect.Effect<void, BrokerError>
  /** Delivers until the scope closes. Closing it gives back what is unsettled. */
  readonly subscribe: (options: SubscribeOptions) => Effect.Effect<Subscription, BrokerError, Scope.Scope>
  readonly admin: Admin
}

/** The broker that a program runs on. Adapters are Layers of it. */
export class Broker extends Context.Service<Broker, Service>()("@requeue/core/Broker") {}
