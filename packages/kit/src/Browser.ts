/**
 * A browser for brokers that show messages only by delivering them: a consumer that holds its deliveries.
 *
 * When to use: as an adapter's `admin.browse`, if the broker cannot show messages otherwise. The browser returns
 * messages by `Release`, which counts as an attempt unless `capabilities.uncountedRelease` is true. A page ends after a
 * second without a message.
 *
 * @example
 * ```ts
 * import type { Broker } from "@requeue/core/port"
 * import { Browser } from "@requeue/kit"
 *
 * const browseOf = (service: Pick<Broker.Service, "capabilities" | "subscribe">): Broker.Admin["browse"] =>
 *   (options) => Browser.overSubscription(service, options)
 * ```
 */
import * as Effect from "effect/Effect"
import * as Latch from "effect/Latch"
import * as Option from "effect/Option"
import * as Scope from "effect/Scope"
import * as Semaphore from "effect/Semaphore"
import { type Broker, BrokerError, type Delivery, RetryPolicy, Settlement } from "@requeue/core/port"

/** The parts of a broker that a browser needs. */
export interface Subscribable extends Pick<Broker.Service, "capabilities" | "subscribe"> {
  /** Whether a queue exists, if a subscription would create it. Default: it exists. */
  readonly exists?: ((queue: string) => Effect.Effect<boolean, BrokerError.BrokerError>) | undefined
}

/** A page ends after this many milliseconds without a message. */
const idleTimeout = 1000

/** How often a lease is extended within its duration. */
const extensions = 3

/** A browser dead-letters nothing, and needs no queue for it. */
const retry = RetryPolicy.make({ maxAttempts: "unlimited", deadLetter: "discard" })

/** The deliveries that a browser holds. */
class Held {
  readonly all = new Set<Delivery.Delivery>()
  /** Those not yet shown. */
  #arrived = new Set<Delivery.Delivery>()
  /** The loss of a shown message, until it is reported. */
  #lost: BrokerError.BrokerError | undefined = undefined
  readonly #change = Latch.makeUnsafe()

  shown(): number {
    return this.all.size - this.#arrived.size
  }

  add(delivery: Delivery.Delivery): void {
    this.all.add(delivery)
    this.#arrived.add(delivery)
    this.#change.openUnsafe()
  }

  /** Returns whether it was held. */
  delete(delivery: Delivery.Delivery): boolean {
    this.#arrived.delete(delivery)
    return this.all.delete(delivery)
  }

  lose(isGone: (delivery: Delivery.Delivery) => boolean, error: BrokerError.BrokerError): void {
    for (const delivery of this.all) {
      if (!isGone(delivery)) continue
      if (!this.#arrived.has(delivery)) this.#lost = error
      this.delete(delivery)
    }
    if (this.#lost !== undefined) this.#change.openUnsafe()
  }

  /**
   * Returns up to `count` new messages, once they have arrived or none has arrived for a second. Fails if a shown message is
   * lost; the next pages then show the held messages again.
   */
  page(count: number): Effect.Effect<ReadonlyArray<Delivery.Delivery>, BrokerError.BrokerError> {
    if (this.#lost !== undefined) {
      const error = this.#lost
      this.#lost = undefined
      this.#arrived = new Set(this.all)
      return Effect.fail(error)
    }
    const page = Effect.sync(() => {
      const shown = [...this.#arrived].slice(0, count)
      for (const delivery of shown) this.#arrived.delete(delivery)
      return shown
    })
    if (this.#arrived.size >= count) return page
    this.#change.closeUnsafe()
    return Effect.flatMap(Effect.timeoutOption(this.#change.await, idleTimeout), (changed) =>
      Option.isSome(changed) ? this.page(count) : page
    )
  }
}

/** A subscription that holds its deliveries, extends their leases, and releases them when the scope closes. */
const holding = (
  { capabilities: { lease }, subscribe }: Subscribable,
  queue: string,
  held: Held,
  lost: (reason: BrokerError.BrokerError["reason"], detail: string) => BrokerError.BrokerError
) =>
  Effect.gen(function* () {
    const subscription = yield* subscribe({
      queue,
      retry,
      deadLetterQueues: [],
      onDelivery: (delivery) => held.add(delivery),
      onReconnect: (isGone = () => true) => held.lose(isGone, lost("ConnectionLost", "the connection was lost"))
    })
    const calls = yield* Semaphore.make(1)
    // One call at a time, because no lease may be extended during a settlement. An interruption waits for the outcome.
    const exclusively = (of: () => ReadonlyArray<Delivery.Delivery>, call: Broker.Subscription["extend"]) => {
      const called = Effect.suspend(() => (of().length === 0 ? Effect.succeed([]) : call(of())))
      return Effect.uninterruptible(calls.withPermit(called))
    }
    const settle = (deliveries: ReadonlyArray<Delivery.Delivery>, settlement: Settlement.Settlement) =>
      exclusively(
        () => deliveries,
        (all) => subscription.settle(all.map((delivery) => ({ delivery, settlement })))
      )
    yield* Effect.addFinalizer(() => {
      const rest = [...held.all].filter((delivery) => held.delete(delivery))
      subscription.credit(0)
      return settle(rest, Settlement.Release())
    })
    if (lease !== undefined) {
      const extended = Effect.map(
        exclusively(
          () => [...held.all],
          (all) => subscription.extend(all)
        ),
        (failures) => {
          const gone = new Set(failures.filter(({ fate }) => fate === "lost").map(({ delivery }) => delivery))
          held.lose((delivery) => gone.has(delivery), lost("LeaseLost", "a lease has ended"))
        }
      )
      yield* Effect.forkScoped(Effect.forever(Effect.delay(extended, lease.duration / extensions)))
    }
    return { subscription, settle }
  })

/** Opens a browser over a subscription. Fails with `Unsupported` for delayed messages. */
export const overSubscription = (
  broker: Subscribable,
  { from, limit, queue }: Broker.BrowseOptions
): Effect.Effect<Broker.Browser, BrokerError.BrokerError, Scope.Scope> =>
  Effect.gen(function* () {
    const failure = (operation: string) => (reason: BrokerError.BrokerError["reason"], detail: string) =>
      new BrokerError.BrokerError({ broker: broker.capabilities.broker, operation, queue, reason, detail })
    if (from === "delayed") {
      return yield* failure("browse")("Unsupported", "the broker cannot show messages that wait for their delay")
    }
    const scope = yield* Effect.scope
    const held = new Held()
    let opened: Effect.Success<ReturnType<typeof holding>> | undefined

    const next = Effect.fnUntraced(function* (count: number) {
      if (opened === undefined) {
        if (broker.exists !== undefined && !(yield* broker.exists(queue))) return []
        opened = yield* Scope.provide(holding(broker, queue, held, failure("browse")), scope)
      }
      const { subscription } = opened
      const room = Math.min(count, limit - held.shown())
      subscription.credit(held.shown() + room)
      const page = yield* held.page(room)
      const trouble = page.length === 0 ? subscription.trouble?.() : undefined
      if (trouble !== undefined) return yield* trouble.error
      return page.map((delivery): Broker.BrowsedMessage => ({ delivery, due: undefined }))
    })

    const remove = Effect.fnUntraced(function* (deliveries: ReadonlyArray<Delivery.Delivery>) {
      // Deleted first, so neither a lease extension nor the end of the scope settles them too.
      const ours = new Set(deliveries.filter((delivery) => held.delete(delivery)))
      const error = failure("remove")("LeaseLost", "the browser does not hold the message")
      const others = deliveries.filter((delivery) => !ours.has(delivery))
      const missing = others.map((delivery): Broker.SettleFailure => ({ delivery, error, fate: "lost" }))
      const failures = yield* opened?.settle([...ours], Settlement.Ack) ?? Effect.succeed([])
      for (const { delivery, fate } of failures) if (fate !== "lost") held.all.add(delivery)
      return [...failures, ...missing]
    }, Effect.uninterruptible)

    return {
      next,
      remove,
      identify: (delivery) => opened?.subscription.identify(delivery),
      browsed: () => ({ isWhole: held.shown() < limit, hidden: undefined })
    }
  })
