/**
 * A subscription that a test drives by hand, below the consumer: the test grants credit, takes deliveries and settles them.
 *
 * Use it in a case or an adapter's test about what the broker does for each call of its port. The subscription repeats and
 * returns nothing automatically, and renews leases only with the option `keep`.
 *
 * @example
 * ```ts
 * import { MemoryBroker } from "@requeue/adapter-memory"
 * import { Port, Workload } from "@requeue/conformance"
 * import { Settlement } from "@requeue/core/port"
 * import * as Effect from "effect/Effect"
 *
 * const program = Effect.gen(function* () {
 *   const broker = yield* MemoryBroker.make()
 *   yield* broker.publish([Workload.outgoing("orders", "m1", { now: Date.now() })])
 *   const port = yield* Port.open(broker, { queue: "orders", credit: 1 })
 *   yield* port.settle(yield* port.next, Settlement.Retry(0))
 *   return (yield* port.next).attempts
 * })
 * await Effect.runPromise(Effect.scoped(program)) // => 2
 * ```
 */
import { type Broker, type BrokerError, type Delivery, RetryPolicy } from "@requeue/core"
import type { Settlement } from "@requeue/core/port"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { CheckFailed } from "./Check.ts"
import * as Wait from "./Wait.ts"

/** The options of a subscription. */
export interface Options {
  /** The queue to consume. */
  readonly queue: string
  /** The maximum number of unsettled deliveries. Default 0: no message arrives before a call of `credit`. */
  readonly credit?: number | undefined
  /** The queues that dead letters may go to. Default: the name of the queue with `.dlq` at its end. */
  readonly deadLetterQueues?: ReadonlyArray<string> | undefined
  /** The retry policy for which the adapter declares the queue. Default: `RetryPolicy.make()`. */
  readonly retry?: RetryPolicy.RetryPolicy | undefined
  /** Whether the leases of all unsettled deliveries are renewed. Default false. */
  readonly keep?: boolean | undefined
  /** Maximum milliseconds that `next` waits. Default 120,000. */
  readonly within?: number | undefined
}

/** An open subscription. */
export interface Port {
  /** Sets the maximum number of unsettled deliveries. */
  readonly credit: (limit: number) => void
  /** The number of deliveries that `next` has not taken yet. */
  readonly waiting: () => number
  /** Takes the oldest delivery, as soon as there is one. */
  readonly next: Effect.Effect<Delivery.Delivery, CheckFailed>
  /** Takes this many deliveries, as soon as they have arrived. */
  readonly take: (count: number) => Effect.Effect<ReadonlyArray<Delivery.Delivery>, CheckFailed>
  /** Settles one delivery. Returns nothing, or why it could not be settled. */
  readonly settle: (
    delivery: Delivery.Delivery,
    settlement: Settlement.Settlement
  ) => Effect.Effect<ReadonlyArray<Broker.SettleFailure>>
  /** Settles several deliveries in one call. Returns those that could not be settled, and why. */
  readonly settleAll: Broker.Subscription["settle"]
  /** Renews the lease of one delivery. Returns nothing, or why it could not be renewed. */
  readonly extend: (delivery: Delivery.Delivery) => Effect.Effect<ReadonlyArray<Broker.SettleFailure>>
  /** Renews the leases of several deliveries in one call. Returns those that could not be renewed, and why. */
  readonly extendAll: Broker.Subscription["extend"]
  /** Acks one delivery in a transaction. Dies on a broker without transactions. */
  readonly ackWithin: (
    transaction: unknown,
    delivery: Delivery.Delivery
  ) => Effect.Effect<ReadonlyArray<Delivery.Delivery>, BrokerError.BrokerError>
  /** Identifies the copy of a message that was delivered; `undefined` if the broker cannot. */
  readonly identify: (delivery: Delivery.Delivery) => string | undefined
  /** How often the adapter has reported that it connected again. */
  readonly reconnects: () => number
}

/** Deliveries whose leases must be renewed. */
type Held = Set<Delivery.Delivery>

/** Milliseconds between two checks of the deliveries. */
const pollInterval = 5

/** Renews the leases of held deliveries, often enough for each. */
const keeping = ({ capabilities: { lease } }: Broker.Service, { extend }: Broker.Subscription, held: Held) =>
  lease === undefined
    ? Effect.void
    : Effect.suspend(() => extend([...held])).pipe(
        Effect.map((failures) => failures.forEach(({ delivery, fate }) => fate === "lost" && held.delete(delivery))),
        Effect.delay(lease.duration / 4),
        Effect.forever
      )

/** Settles held deliveries; those that could not be settled are held again. */
const settling =
  ({ settle }: Broker.Subscription, held: Held): Broker.Subscription["settle"] =>
  (requests) =>
    Effect.suspend(() => {
      for (const { delivery } of requests) held.delete(delivery)
      return Effect.tap(settle(requests), (failures) =>
        Effect.sync(() => failures.forEach(({ delivery, fate }) => fate !== "lost" && held.add(delivery)))
      )
    })

/** Subscribes until the scope closes. */
export const open = (
  broker: Broker.Service,
  {
    credit = 0,
    queue,
    deadLetterQueues = [`${queue}.dlq`],
    keep = false,
    retry = RetryPolicy.make(),
    within = 120_000
  }: Options
): Effect.Effect<Port, Effect.Error<ReturnType<Broker.Service["subscribe"]>>, Scope.Scope> =>
  Effect.gen(function* () {
    const inbox: Array<Delivery.Delivery> = []
    const held: Held = new Set()
    let reconnects = 0
    const subscription = yield* broker.subscribe({
      queue,
      retry,
      deadLetterQueues,
      onDelivery: (delivery) => {
        inbox.push(delivery)
        held.add(delivery)
      },
      onReconnect: (isGone = () => true) => {
        reconnects++
        for (const delivery of held) if (isGone(delivery)) held.delete(delivery)
      }
    })
    subscription.credit(credit)
    if (keep) yield* Effect.forkScoped(keeping(broker, subscription, held))
    const settleAll = settling(subscription, held)
    const take = (count: number) =>
      Wait.found(
        () => `${count} deliveries from ${queue}, ${inbox.length} arrived`,
        Effect.sync(() => (inbox.length < count ? undefined : inbox.splice(0, count))),
        { within, every: pollInterval }
      )
    return {
      credit: subscription.credit,
      waiting: () => inbox.length,
      next: Effect.map(take(1), ([first]) => first!),
      take,
      settle: (delivery, settlement) => settleAll([{ delivery, settlement }]),
      settleAll,
      extend: (delivery) => subscription.extend([delivery]),
      extendAll: subscription.extend,
      ackWithin: (transaction, delivery) => Effect.suspend(() => subscription.ackWithin!(transaction, [delivery])),
      identify: (delivery) => subscription.identify(delivery),
      reconnects: () => reconnects
    }
  })

/** Shows up to `count` ready messages of a queue, oldest first if the broker keeps an order. */
export const oldest = (
  { admin }: Broker.Service,
  queue: string,
  count: number
): Effect.Effect<ReadonlyArray<Delivery.Delivery>, BrokerError.BrokerError> =>
  Effect.gen(function* () {
    const { next } = yield* admin.browse({ queue, from: "ready", limit: count })
    const found: Array<Delivery.Delivery> = []
    let page: ReadonlyArray<Broker.BrowsedMessage>
    do {
      page = yield* next(count - found.length)
      found.push(...page.map(({ delivery }) => delivery))
    } while (page.length > 0 && found.length < count)
    return found
  }).pipe(Effect.scoped)
