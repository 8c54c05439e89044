/**
 * The port: an adapter implements {@link Service}. It fits push with credit (RabbitMQ, NSQ), polling with leases (SQS),
 * brokers without headers, and batch settlement.
 *
 * Every adapter MUST keep these rules:
 *
 * 1. `publish` succeeds only when the broker has confirmed every message and routed each of them.
 * 2. A settlement that publishes a copy (a delayed retry, a dead letter) settles the original only after the broker has
 *    confirmed the copy. From then on the settlement has succeeded: where the broker delivers the original again, the
 *    adapter acknowledges it, when it arrives and whatever settlement is asked for it. No copy is published for a delivery
 *    whose lease or connection is known to be lost: somebody else may have the message.
 * 3. A delivery is settled on the connection that delivered it, or not at all. A second settlement of the same delivery is
 *    a mistake of the caller, and MUST NOT reach the broker.
 * 4. `settle` never fails as a whole: it returns the deliveries that it could not settle, each with its {@link Fate}. A
 *    delivery that is not `lost` is still unsettled, and the core settles it again, perhaps otherwise.
 * 5. At most `credit` deliveries are unsettled at any time. `credit(0)` takes effect before any settlement that is given
 *    after it. Deliveries that were on their way already may still arrive; the core buffers them.
 * 6. A lost connection is made again without the core's help: the adapter declares again what it needs, and resumes with
 *    the last credit. Where deliveries end with their connection, it calls `onReconnect`. A `subscribe` that comes meanwhile
 *    waits for the connection, or tries again. A queue that is deleted under a subscription is declared again as well, with
 *    pauses between attempts that fail.
 * 7. `publish`, `settle` and `extend` end in bounded time. When the broker does not answer, `publish` fails, and the others
 *    return the deliveries with an error.
 * 8. No message is delivered before it is due. Where the broker cannot keep it for so long, the delivery has
 *    `metadata.notBefore`, so that the core can give it back.
 * 9. `connection` is that of the broker, whatever becomes of single queues. It is `down` from the moment at which a loss is
 *    noticed until the broker can be reached again, also where deliveries outlive connections. Every loss changes `since`.
 *    The call sends nothing and returns at once.
 * 10. `identify` names the copy of every message that the adapter delivers, as {@link Subscription} says. It returns
 *    `undefined` only for a message that neither the broker nor the adapter can tell from another one.
 * 11. The `headers` and the `native` facts of a delivery are frozen, and nobody else writes to its `body`: handlers and hooks
 *    get the same objects.
 */
import * as Context from "effect/Context"
import type * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { Backlog, Request as BacklogRequest } from "./Backlog.ts"
import type { BrokerError, Reason } from "./BrokerError.ts"
import type { Counts } from "./Counts.ts"
import type { Capabilities } from "./Capabilities.ts"
import type { Connection } from "./Connection.ts"
import type { Delivery } from "../message/Delivery.ts"
import type { Outgoing } from "../message/Outgoing.ts"
import type { RetryPolicy } from "../policy/RetryPolicy.ts"
import type { Settlement } from "../message/Settlement.ts"
import type { Trouble } from "./Trouble.ts"

export type { Counts }

/** The options of a subscription. */
export interface SubscribeOptions {
  /** The queue to consume. */
  readonly queue: string
  /** The policy that will decide about failures; adapters plan their native objects from it. */
  readonly retry: RetryPolicy
  /** The queues to which dead letters may go. They must exist, and be bound, before the first delivery. */
  readonly deadLetterQueues: ReadonlyArray<string>
  /** Most messages that a handler gets at a time. Default: 1. */
  readonly maxBatchSize?: number | undefined
  /** Called once for each delivery. It does not throw, and returns at once. */
  readonly onDelivery: (delivery: Delivery) => void
  /**
   * Called after a lost connection was made again, before its first delivery. Unsettled deliveries of the lost connection
   * are gone: `isGone` tells which these are, and is for adapters with several connections. Default: all are gone.
   */
  readonly onReconnect: (isGone?: (delivery: Delivery) => boolean) => void
  /**
   * Called when the broker tells only now that it did not take a settlement which `settle` has answered as done. The core
   * reports it, and does nothing else: the message comes again by itself, or is gone. For brokers that answer no settlement
   * that succeeds.
   */
  readonly onRefused?: ((refused: Refused) => void) | undefined
}

/** A settlement that was taken for done, and was not. */
export interface Refused {
  readonly delivery: Pick<Delivery, "metadata" | "attempts">
  readonly settlement: Settlement["_tag"]
  readonly error: BrokerError
}

/** One settlement for one delivery. */
export interface SettleRequest {
  readonly delivery: Delivery
  readonly settlement: Settlement
}

/**
 * The fate of a delivery that could not be settled. The adapter says it; the core never concludes it from the
 * error.
 *
 * - `lost`: its lease or its connection is lost. The broker delivers the message again by itself.
 * - `transient`: nothing has happened, for a reason that other messages have as well, such as throttling, an alarm, or no
 *   connection for copies. The core pauses all settlements but one, and settles it again.
 * - `unknown`: no answer came, so that it may have happened. The core goes on as with `transient`.
 * - `rejected`: the broker does not take this settlement of this message: its copy is too large, cannot be encoded, has no
 *   queue, or is forbidden. The core tries it with a smaller copy, or another way; other messages do not wait for it.
 */
export type Fate = "lost" | "transient" | "unknown" | "rejected"

/** A delivery that could not be settled. */
export interface SettleFailure {
  readonly delivery: Delivery
  readonly error: BrokerError
  readonly fate: Fate
  /** Whether a smaller copy may be taken, when this one is refused. Default: true. */
  readonly smaller?: boolean | undefined
}

const fates: { readonly [R in Reason]: Fate } = {
  ConnectionFailed: "transient",
  Throttled: "transient",
  ConnectionLost: "unknown",
  Timeout: "unknown",
  LeaseLost: "lost",
  QueueFull: "rejected",
  AccessRefused: "rejected",
  QueueMissing: "rejected",
  QueueMismatch: "rejected",
  Unroutable: "rejected",
  BodyTooLarge: "rejected",
  Unsupported: "rejected"
}

/**
 * The fate of a delivery that is still held, after a call for its settlement, such as the publish of its copy, has
 * failed with this error.
 *
 * When to use: in an adapter, once it is known that the lease and the connection that delivered are not lost: a lost
 * connection is taken for the one that published.
 */
export const fateOf = ({ reason }: BrokerError): Fate => fates[reason]

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
  /**
   * Names the copy of a message that was delivered: every delivery of this copy has the same name, and no other message
   * in the queue has it. The name comes from the broker or from the adapter, never from an id or a header that a producer
   * can repeat. By it the core knows a message whose delivery was lost. `undefined`: nothing tells this message from others.
   */
  readonly identify: (delivery: Delivery) => string | undefined
  /**
   * Whether every retry publishes a copy, also one without a delay: then a message that comes again while its retry is under
   * way comes because its lease has ended, and waits for the answer. Default: it may be the retry itself.
   */
  readonly copiesRetries?: boolean | undefined
  /**
   * Why the broker does not give the messages of the queue, though it can be reached or seems to be; `undefined` while it
   * does. The call sends nothing and returns at once. Default: it always does.
   */
  readonly trouble?: (() => Trouble | undefined) | undefined
}

/** A message that waits for its delay, as the next consumer would see it. */
export interface BrowsedMessage {
  readonly delivery: Delivery
  /** When it is due, in milliseconds since the epoch, by its sender's clock; `undefined` where it does not say. */
  readonly due: number | undefined
}

/** Which messages to browse. */
export interface BrowseOptions {
  /** The queue to browse. */
  readonly queue: string
  /** Messages that are ready, or those that wait for their delay. */
  readonly from: "ready" | "delayed"
  /** The retry policy of the queue's consumers, which says where delayed messages wait. Default: none has a place of its own. */
  readonly retry?: RetryPolicy | undefined
  /** The most messages that may be held at a time. The broker may allow fewer: then `isWhole` of the end is false. */
  readonly limit: number
}

/** How far a browser has come. */
export interface Coverage {
  /** Whether every message that waited from the beginning to the end was shown. */
  readonly isWhole: boolean
  /** Messages that the broker hides after held ones of their group; `undefined` where it cannot tell. */
  readonly hidden: number | undefined
}

/**
 * Shows messages of a queue page by page, and removes those that it is told to. A message that was shown is held: no consumer
 * gets it until it is removed, or returned. The end of the scope returns all that are held, as they were and where they were.
 */
export interface Browser {
  /**
   * Returns up to `count` further messages, as the next consumer would see them, oldest first where the broker has an order.
   * Empty: none came in time; a later call may return more. Of delayed messages, it first returns the page before to the
   * broker, because they are due soon: what is to be removed is removed before the next call.
   *
   * It fails with `ConnectionLost` or `LeaseLost` when consumers may have what it holds. The next call then opens the queue
   * anew, and shows again what was not removed: `identify` knows it.
   */
  readonly next: (count: number) => Effect.Effect<ReadonlyArray<BrowsedMessage>, BrokerError>
  /**
   * Removes held messages for good, and returns those that it does not know to be removed, with their fates. It ends in
   * bounded time. A message that is no longer held has the fate `lost`.
   */
  readonly remove: (deliveries: ReadonlyArray<Delivery>) => Effect.Effect<ReadonlyArray<SettleFailure>>
  /** Names a copy, as {@link Subscription.identify} does, over all openings of this browser. */
  readonly identify: (delivery: Delivery) => string | undefined
  /** How far it has come: of use once `next` has returned nothing. */
  readonly browsed: () => Coverage
}

/**
 * Functions for operators. Dead-letter queues are queues like any other. Where a part of the broker does not answer, they
 * tell of the others and work on those, and `counts` names what is missing; they fail when none answers.
 */
export interface Admin {
  readonly counts: (queue: string) => Effect.Effect<Counts, BrokerError>
  /**
   * Opens a browser on a queue. It makes nothing, and shows nothing of a queue that is missing. It keeps nothing of a message
   * that it has shown, but what returning or removing it takes: there may be 100,000. It extends leases.
   *
   * Fails with `Unsupported` for delayed messages, unless `capabilities.delayedMessages` is true.
   */
  readonly browse: (options: BrowseOptions) => Effect.Effect<Browser, BrokerError, Scope.Scope>
  /** The names of queues that the broker can list, for suggestions: some may be missing. Default: it lists none. */
  readonly names?: Effect.Effect<ReadonlyArray<string>, BrokerError> | undefined
  /**
   * Removes all messages that are ready, and returns their number. It may remove those that wait for their delay as well:
   * then these count. What a consumer has stays. It fails when it does not know that they are removed.
   */
  readonly purge: (queue: string) => Effect.Effect<number, BrokerError>
  /**
   * Whether two names are one queue: names that the broker writes alike, or a name and an address. It may ask the broker.
   * Default: where both are the same text.
   */
  readonly isSame?: ((one: string, other: string) => Effect.Effect<boolean, BrokerError>) | undefined
  /**
   * All that waits in a queue, and where. It may ask the broker more than `counts` does: that is asked again and again, this
   * when somebody looks. Default: what `counts` tells.
   */
  readonly backlog?: ((request: BacklogRequest) => Effect.Effect<Backlog, BrokerError>) | undefined
  /**
   * The most messages of the queue that wait for their delay, where `counts` cannot tell because queues share the places of
   * their delays: it leaves none of the queue's own out, and those of others may be among them. It counts, and looks at
   * none; `browse` tells whose they are. `undefined`: nobody knows. Default: nobody knows.
   */
  readonly delayedAtMost?: ((queue: string) => Effect.Effect<number | undefined, BrokerError>) | undefined
}

/** A broker, as the core uses it. */
export interface Service {
  readonly capabilities: Capabilities
  /** The connection as the adapter saw it last. */
  readonly connection: () => Connection
  /**
   * Asks the broker for an answer, whatever it is, and fails when there is none. `connect` calls it before the program gets the
   * broker, unless `waitForBroker` is 0. For adapters whose brokers have no connection to open. Default: whoever has the service has reached it.
   */
  readonly reach?: Effect.Effect<void, BrokerError> | undefined
  /**
   * Publishes all messages, or fails. The error's `entries` say what became of each; where there are none, any of them may
   * have been published if the error's reason leaves that open, else none was. `BrokerError.ofBatch` makes such an error.
   *
   * A publish that is interrupted should fail at once, beside the interruption, with such an error of messages that it has
   * not sent, as by `Effect.onInterrupt` around all of it. Without one, any of them may have been published.
   *
   * It is called for every send. As a `Direct` effect, it needs no fiber.
   */
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
