/**
 * The port: an adapter implements {@link Service}. The port suits brokers that push messages up to a credit (RabbitMQ,
 * NSQ) or are polled and give leases (SQS), brokers without headers, and batch settlement.
 *
 * Every adapter MUST keep these rules:
 *
 * 1. `publish` succeeds only when the broker has confirmed every message and routed each of them.
 * 2. A settlement that publishes a copy (a delayed retry, a dead letter) settles the original only after the broker has
 *    confirmed the copy. From then on the settlement has succeeded: if the broker redelivers the original, the adapter
 *    acks it on arrival, whatever settlement the core asks for. The adapter publishes no copy for a delivery whose
 *    lease or connection is known to be lost: another consumer may have the message.
 * 3. A delivery is settled on the connection that delivered it, or not at all. A second settlement of the same delivery
 *    is the caller's mistake and MUST NOT reach the broker.
 * 4. `settle` never fails as a whole: it returns the deliveries that it could not settle, each with its {@link Fate}. A
 *    delivery that is not `lost` is still unsettled, and the core settles it again, perhaps differently.
 * 5. At most `credit` deliveries are unsettled at any time. `credit(0)` takes effect before any later settlement.
 *    Deliveries that were already on their way may still arrive; the core buffers them.
 * 6. The adapter reconnects without the core's help: it redeclares what it needs, and resumes with the last credit.
 *    Where deliveries end with their connection, it calls `onReconnect`. Without a connection, `subscribe` waits or
 *    tries again. The adapter also redeclares a queue that is deleted during a subscription, with pauses between failed
 *    attempts.
 * 7. `publish`, `settle` and `extend` end in bounded time. When the broker does not answer, `publish` fails, and the
 *    others return the deliveries with an error.
 * 8. No message is delivered before it is due. Where the broker cannot keep a message that long, the delivery has
 *    `metadata.notBefore`, so the core can return it.
 * 9. `connection` is the state of the broker, not of single queues. The state is `down` from the moment a loss is
 *    noticed until the broker can be reached again, even where deliveries outlive connections. Every loss changes
 *    `since`. A call of `connection` sends nothing and returns at once.
 * 10. `identify` names the copy of every message that the adapter delivers, see {@link Subscription.identify}. It
 *     returns `undefined` only for a message that neither the broker nor the adapter can distinguish from another one.
 * 11. The `headers` and `native` facts of a delivery are frozen, and no other code writes to its `body`: handlers and
 *     hooks get the same objects.
 * 12. With the capability `transactions`: what `publishWithin` and `ackWithin` do happens if and only if the transaction is
 *     committed. `settle` and `extend` are fenced: after the commit, they return the delivery as `lost`, change nothing and
 *     store no copy. They do not wait for a transaction longer than MUST 7 allows.
 * 13. Of two transactions that record the same message in the `inbox`, one gets its id as recorded before, or cannot be committed.
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
import type { Inbox } from "./Inbox.ts"
import type { Outgoing } from "../message/Outgoing.ts"
import type { RetryPolicy } from "../policy/RetryPolicy.ts"
import type { ShareLimits } from "../policy/ShareLimits.ts"
import type { Settlement } from "../message/Settlement.ts"
import type { Trouble } from "./Trouble.ts"

export type { Counts }

/** The options of a subscription. */
export interface SubscribeOptions {
  /** The queue to consume. */
  readonly queue: string
  /** The policy that decides about failures. Adapters plan their native objects from it. */
  readonly retry: RetryPolicy
  /** The queues that dead letters may go to. They must exist and be bound before the first delivery. */
  readonly deadLetterQueues: ReadonlyArray<string>
  /** The most messages that a handler gets at a time. Default: 1. */
  readonly maxBatchSize?: number | undefined
  /** The limits of the messages with one `fairBy`. Only for a broker with `fairShares`. Default: none. */
  readonly shareLimits?: ShareLimits | undefined
  /** Called once for each delivery. It does not throw, and returns at once. */
  readonly onDelivery: (delivery: Delivery) => void
  /**
   * Called after a reconnect, before the first delivery. The unsettled deliveries of the lost connection are gone. Adapters
   * with several connections pass `isGone` to select them. Default: all are gone.
   */
  readonly onReconnect: (isGone?: (delivery: Delivery) => boolean) => void
  /**
   * Called when the broker refuses a settlement after `settle` reported success. Only brokers that do not confirm
   * settlements need it. The core only reports the refusal: the broker redelivers the message, or the message is lost.
   */
  readonly onRefused?: ((refused: Refused) => void) | undefined
}

/** A settlement that was reported as done, and that the broker then refused. */
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
 * Why a delivery could not be settled. The adapter decides it; the core never infers it from the error.
 *
 * - `lost`: the delivery's lease or connection is lost. The broker redelivers the message.
 * - `transient`: nothing happened, for a reason that affects other messages too, such as throttling, an alarm, or no
 *   connection for copies. The core pauses all settlements but one, and retries.
 * - `unknown`: the broker did not answer, so the settlement may have happened. The core proceeds as with `transient`.
 * - `rejected`: the broker refuses this settlement of this message: its copy is too large, cannot be encoded, has no
 *   queue, or is forbidden. The core tries a smaller copy or another way; other messages do not wait.
 * - `committed`: a transaction has done the message, so the adapter has acked it instead.
 */
export type Fate = "lost" | "transient" | "unknown" | "rejected" | "committed"

/** A delivery that could not be settled. */
export interface SettleFailure {
  readonly delivery: Delivery
  readonly error: BrokerError
  readonly fate: Fate
  /** Whether a smaller copy may succeed. Default: true. */
  readonly smaller?: boolean | undefined
}

const fates: { readonly [R in Reason]: Exclude<Fate, "committed"> } = {
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
 * Returns the fate of a delivery when a call that settles it has failed, such as the publish of its copy.
 *
 * When to use: in an adapter, if the delivery's own lease and connection are intact. `ConnectionLost` then means that the
 * publishing connection was lost, so the fate is `unknown`.
 */
export const fateOf = ({ reason }: BrokerError): Exclude<Fate, "committed"> => fates[reason]

/** A running subscription. */
export interface Subscription {
  /** Sets how many deliveries may be unsettled at any time. The number is 0 until the first call. */
  readonly credit: (limit: number) => void
  /** Settles deliveries, and returns those that it could not settle. */
  readonly settle: (requests: ReadonlyArray<SettleRequest>) => Effect.Effect<ReadonlyArray<SettleFailure>>
  /**
   * Renews the leases of these deliveries, and returns those that it could not renew. Without leases it does nothing. The
   * core never calls it for a delivery that is being settled.
   */
  readonly extend: (deliveries: ReadonlyArray<Delivery>) => Effect.Effect<ReadonlyArray<SettleFailure>>
  /**
   * Acks deliveries in a transaction of the broker's database. Fails with `LeaseLost` if one of them is not held, and with
   * `Unsupported` if the value is no transaction, or one that has ended: the caller then rolls back. Where the transaction is
   * synchronous, the effect ends without waiting. Default: the broker has no transactions.
   *
   * Succeeds with the deliveries whose message this or an earlier transaction has done, or that the list has twice: the handler must
   * then roll back, and the core releases all of them. Without an inbox the result is empty: a consumer never holds a done message.
   *
   * The core later settles each delivery as after a failed run. `lost` then means that the transaction was committed.
   */
  readonly ackWithin?:
    | ((
        transaction: unknown,
        deliveries: ReadonlyArray<Delivery>
      ) => Effect.Effect<ReadonlyArray<Delivery>, BrokerError>)
    | undefined
  /**
   * Names the delivered copy of a message: every delivery of this copy has this name, and no other message in the queue has
   * it. The core recognises a redelivered message by it. The name comes from the broker or the adapter, never from an id or
   * header that a producer can repeat. `undefined`: nothing identifies the copy.
   */
  readonly identify: (delivery: Delivery) => string | undefined
  /**
   * Whether every retry publishes a copy, even one without a delay. If true, a message that is redelivered during its
   * retry has lost its lease, and waits for the outcome of the retry. Default: false, so the redelivery may be the
   * retry itself.
   */
  readonly copiesRetries?: boolean | undefined
  /**
   * Why the broker does not deliver the queue's messages although the connection seems up; `undefined` while the broker
   * delivers. The call sends nothing and returns at once. Default: no trouble.
   */
  readonly trouble?: (() => Trouble | undefined) | undefined
}

/** A message as the next consumer would see it. */
export interface BrowsedMessage {
  readonly delivery: Delivery
  /** When the message is due, in epoch milliseconds by the sender's clock; `undefined` if unknown. */
  readonly due: number | undefined
}

/** Which messages to browse. */
export interface BrowseOptions {
  /** The queue to browse. */
  readonly queue: string
  /** Whether to browse the ready messages or the delayed messages. */
  readonly from: "ready" | "delayed"
  /**
   * The policy of the queue's consumers. Brokers that keep each delay in a separate place need it to find these places.
   * Default: none are browsed.
   */
  readonly retry?: RetryPolicy | undefined
  /** The most messages to hold at a time. If the broker allows fewer, `isWhole` is false at the end. */
  readonly limit: number
}

/** How much of a queue a browser has shown. */
export interface Coverage {
  /** Whether every message that waited from the beginning to the end was shown. */
  readonly isWhole: boolean
  /**
   * The number of messages that the broker hides because earlier messages of their group are held; `undefined` if
   * unknown.
   */
  readonly hidden: number | undefined
}

/**
 * Shows the messages of a queue page by page, and removes chosen ones. A message that was shown is held: no consumer
 * gets it until it is removed or returned. Closing the scope returns all held messages unchanged, to their positions.
 */
export interface Browser {
  /**
   * Returns up to `count` further messages, oldest first where the broker has an order. An empty list means that none
   * arrived in time; a later call may return more. Of delayed messages, a call first returns the previous page to the
   * broker, because its messages may be due soon: remove messages before the next call.
   *
   * Fails with `ConnectionLost` or `LeaseLost` when consumers may have the held messages. The next call then reopens
   * the queue, and shows all messages again that were not removed, under the same `identify` names.
   */
  readonly next: (count: number) => Effect.Effect<ReadonlyArray<BrowsedMessage>, BrokerError>
  /**
   * Removes held messages for good, in bounded time. Returns the messages that are perhaps not removed, with their
   * fates: `lost` for a message that is no longer held.
   */
  readonly remove: (deliveries: ReadonlyArray<Delivery>) => Effect.Effect<ReadonlyArray<SettleFailure>>
  /** Names a copy as {@link Subscription.identify} does, across all reopenings of this browser. */
  readonly identify: (delivery: Delivery) => string | undefined
  /** Returns how much of the queue was shown. Call it after `next` has returned an empty list. */
  readonly browsed: () => Coverage
}

/**
 * Functions for operators. Dead-letter queues are queues like any other. If only some parts of the broker answer, the
 * functions use these parts, and `counts` names the missing parts. The functions fail if no part answers.
 */
export interface Admin {
  readonly counts: (queue: string) => Effect.Effect<Counts, BrokerError>
  /**
   * Opens a browser on a queue. The browser creates nothing, shows nothing of a missing queue, and extends leases. It
   * may show 100,000 messages, so it keeps only what it needs to return or remove each of them.
   *
   * Fails with `Unsupported` for delayed messages, unless `capabilities.delayedMessages` is true.
   */
  readonly browse: (options: BrowseOptions) => Effect.Effect<Browser, BrokerError, Scope.Scope>
  /** The names of queues that the broker can list, for suggestions: some may be missing. Default: none. */
  readonly names?: Effect.Effect<ReadonlyArray<string>, BrokerError> | undefined
  /**
   * Removes all ready messages, and returns their number. It may also remove delayed messages, and then counts them.
   * Messages in flight stay. It fails when the removal is uncertain.
   */
  readonly purge: (queue: string) => Effect.Effect<number, BrokerError>
  /**
   * Returns whether two names are one queue, such as a name and an address. The call may ask the broker. Default: equal
   * text.
   */
  readonly isSame?: ((one: string, other: string) => Effect.Effect<boolean, BrokerError>) | undefined
  /** Returns the whole backlog. Operators call it, so it may be slower than `counts`. Default: the figures of `counts`. */
  readonly backlog?: ((request: BacklogRequest) => Effect.Effect<Backlog, BrokerError>) | undefined
  /**
   * Returns an upper bound of the number of the queue's delayed messages; `undefined` if unknown. It is for brokers
   * that keep the delayed messages of several queues in one place: only `browse` can separate them, not `counts`.
   * Default: unknown.
   */
  readonly delayedAtMost?: ((queue: string) => Effect.Effect<number | undefined, BrokerError>) | undefined
}

/** A broker, as the core uses it. */
export interface Service {
  readonly capabilities: Capabilities
  /** Returns the connection as the adapter last saw it. */
  readonly connection: () => Connection
  /**
   * Sends any request to the broker, and fails if no answer comes. `connect` calls it, unless `waitForBroker` is 0. It
   * is for brokers without a connection to open. Default: making the service has already reached the broker.
   */
  readonly reach?: Effect.Effect<void, BrokerError> | undefined
  /**
   * Publishes all messages, or fails. The core calls it for every send. If it returns a `Direct` effect, the core runs
   * it without a fiber.
   *
   * The error's `entries` report the outcome of each message; `BrokerError.ofBatch` makes such an error. An error
   * without entries means that no message was published, unless its reason leaves that open. If a publish is
   * interrupted, it should fail at once with an error whose `entries` name the unsent messages, for example by
   * `Effect.onInterrupt` around the whole effect. Without that error, every message may have been published.
   */
  readonly publish: (messages: ReadonlyArray<Outgoing>) => Effect.Effect<void, BrokerError>
  /**
   * Publishes messages in a transaction of the broker's database. Fails as {@link Subscription.ackWithin} does, and for a
   * message that the broker refuses. Default: the broker has no transactions.
   */
  readonly publishWithin?:
    | ((transaction: unknown, messages: ReadonlyArray<Outgoing>) => Effect.Effect<void, BrokerError>)
    | undefined
  /** Records messages of other brokers in its transactions. Default: it cannot. */
  readonly inbox?: Inbox | undefined
  /** The broker whose transactions this one uses, see `Store.layer`. Default: none, or its own. */
  readonly store?: Service | undefined
  /** The queue of the store that is the outbox. Default: there is no store. */
  readonly outbox?: string | undefined
  /** Returns another broker with the same store, such as that of a function's invocation. Default: there is no store. */
  readonly beside?: ((broker: Service) => Service) | undefined
  /** Delivers messages until the scope closes. Closing returns unsettled messages to the queue. */
  readonly subscribe: (options: SubscribeOptions) => Effect.Effect<Subscription, BrokerError, Scope.Scope>
  readonly admin: Admin
}

/**
 * The broker of a program, as a service of Effect. Adapters make Layers of it.
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
