/**
 * A subscription that is driven by hand, below the consumer: the driver grants credit, takes deliveries and settles them.
 *
 * When to use: in a case, or in an adapter's own test, about what the broker does for each call of its port. Nothing is
 * repeated or given back by itself, and no lease is renewed unless `keep` says so.
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

/** A subscription, and how it begins. */
export interface Options {
  /** The queue to consume. */
  readonly queue: string
  /** The number of deliveries that may be unsettled at any time. Default 0: none comes before `credit` is called. */
  readonly credit?: number | undefined
  /** The queues to which dead letters may go. Default: the name of the queue with `.dlq` at its end. */
  readonly deadLetterQueues?: ReadonlyArray<string> | undefined
  /** The policy for which the adapter declares what it needs. Default: `RetryPolicy.make()`. */
  readonly retry?: RetryPolicy.RetryPolicy | undefined
  /** Whether the leases of all that is not settled are renewed, so that no time is too long. Default false. */
  readonly keep?: boolean | undefined
  /** Milliseconds that `next` waits at most. Default 120,000. */
  readonly within?: number | undefined
}

/** An open subscription. */
export interface Port {
  /** Sets the number of deliveries that may be unsettled at any time. */
  readonly credit: (limit: number) => void
  /** The number of deliveries that `next` has not taken yet. */
  readonly waiting: () => number
  /** Takes the oldest delivery, as soon as there is one. */
  readonly next: Effect.Effect<Delivery.Delivery, CheckFailed>
  /** Takes so many deliveries, as soon as there are as many. */
  readonly take: (count: number) => Effect.Effect<ReadonlyArray<Delivery.Delivery>, CheckFailed>
  /** Settles one delivery. The answer is empty, or says why it could not be settled. */
  readonly settle: (
    delivery: Delivery.Delivery,
    settlement: Settlement.Settlement
  ) => Effect.Effect<ReadonlyArray<Broker.SettleFailure>>
  /** Settles several deliveries in one call. The answer says which of them could not be settled, and why. */
  readonly settleAll: Broker.Subscription["settle"]
  /** Renews the lease of one delivery. The answer is empty, or says why it could not be renewed. */
  readonly extend: (delivery: Delivery.Delivery) => Effect.Effect<ReadonlyArray<Broker.SettleFailure>>
  /** Renews the leases of several deliveries in one call. The answer says which could not be renewed, and why. */
  readonly extendAll: Broker.Subscription["extend"]
  /** Names the copy of a message that was delivered; `undefined` where the broker cannot tell. */
  readonly identify: (delivery: Delivery.Delivery) => string | undefined
  /** How often the adapter has said that a lost connection was made again. */
  readonly reconnects: () => number
}

/** Deliveries whose leases are to be renewed. */
type Held = Set<Delivery.Delivery>

/** Milliseconds from one look at the deliveries to the next. */
const pollInterval = 5

/** Renews the leases of what is held, often enough for each. */
const keeping = ({ capabilities: { lease } }: Broker.Service, { extend }: Broker.Subscription, held: Held) =>
  lease === undefined
    ? Effect.void
    : Effect.suspend(() => extend([...held])).pipe(
        Effect.map((failures) => failures.forEach(({ delivery, fate }) => fate === "lost" && held.delete(delivery))),
        Effect.delay(lease.duration / 4),
        Effect.forever
      )

/** Settles what is held; what could not be settled is held again. */
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
        () => `${count} deliveries from ${queue}, ${inbox.length} came`,
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
      identify: (delivery) => subscription.identify(delivery),
      reconnects: () => reconnects
    }
  })

/** Shows up to `count` messages of a queue that are ready, the oldest first where the broker has an order. */
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
