/**
 * A browser for brokers that show messages only by delivering them: a consumer that holds its deliveries.
 *
 * When to use: as an adapter's `admin.browse`, where the broker offers nothing better. It returns messages by `Release`, which
 * counts as an attempt unless `capabilities.uncountedRelease` is true. A page ends when no message has come for a second.
 *
 * @example
 * ```ts
 * import { type Broker, Browser } from "@requeue/core/adapter-kit"
 *
 * const browseOf = (service: Pick<Broker.Service, "capabilities" | "subscribe">): Broker.Admin["browse"] =>
 *   (options) => Browser.overSubscription(service, options)
 * ```
 */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Scope from "effect/Scope"
import * as Semaphore from "effect/Semaphore"
import type { Delivery } from "../message/Delivery.ts"
import * as Settlement from "../message/Settlement.ts"
import * as RetryPolicy from "../policy/RetryPolicy.ts"
import type * as Broker from "../port/Broker.ts"
import { BrokerError } from "../port/BrokerError.ts"

/** The parts of a broker that such a browser uses. */
export interface Subscribable extends Pick<Broker.Service, "capabilities" | "subscribe"> {
  /** Whether there is a queue of this name, where a subscription would create it. Default: yes. */
  readonly exists?: ((queue: string) => Effect.Effect<boolean, BrokerError>) | undefined
}

/** Milliseconds without a message after which a page ends. */
const silence = 1000

/** Extensions of a lease within its duration. */
const extensions = 3

/** A browser dead-letters nothing, and needs no queue for it. */
const retry = RetryPolicy.make({ maxAttempts: "unlimited", deadLetter: "discard" })

/** The deliveries of a browser's subscription. */
class Held {
  /** Those that were shown. */
  readonly shown = new Set<Delivery>()
  /** Those that are to be shown. */
  arrived: Array<Delivery> = []
  /** The loss that is not reported yet. */
  lost: BrokerError | undefined = undefined
  /** Called when a message has come, or was lost. */
  wake = (): void => undefined

  all(): ReadonlyArray<Delivery> {
    return [...this.shown, ...this.arrived]
  }

  add(delivery: Delivery): void {
    this.arrived.push(delivery)
    this.wake()
  }

  lose(isGone: (delivery: Delivery) => boolean, error: BrokerError): void {
    this.arrived = this.arrived.filter((delivery) => !isGone(delivery))
    for (const delivery of this.shown) {
      if (!isGone(delivery)) continue
      this.shown.delete(delivery)
      this.lost = error
    }
    if (this.lost !== undefined) this.wake()
  }

  show(count: number): ReadonlyArray<Delivery> {
    const page = this.arrived.splice(0, count)
    for (const delivery of page) this.shown.add(delivery)
    return page
  }

  /** Returns the loss, after which all that is left is shown again. */
  takeLoss(): BrokerError | undefined {
    const { lost } = this
    if (lost === undefined) return undefined
    this.lost = undefined
    this.arrived = [...this.all()]
    this.shown.clear()
    return lost
  }

  clear(): ReadonlyArray<Delivery> {
    const all = this.all()
    this.arrived = []
    this.shown.clear()
    return all
  }

  /** Waits until so many have arrived, or none has for a while. */
  gather(count: number): Effect.Effect<void> {
    const isOver = () => this.lost !== undefined || this.arrived.length >= count
    const arrival = Effect.callback<void>((resume) => {
      this.wake = () => resume(Effect.void)
      if (isOver()) this.wake()
    })
    const step: Effect.Effect<void> = Effect.suspend(() =>
      isOver()
        ? Effect.void
        : Effect.flatMap(Effect.timeoutOption(arrival, silence), (woken) => (Option.isSome(woken) ? step : Effect.void))
    )
    return step
  }
}

/** A subscription, and its settlements: no lease is extended while its delivery is settled. */
interface Opened {
  readonly subscription: Broker.Subscription
  readonly settle: (
    deliveries: ReadonlyArray<Delivery>,
    settlement: Settlement.Settlement
  ) => Effect.Effect<ReadonlyArray<Broker.SettleFailure>>
}

const subscribing = (
  { capabilities: { lease }, subscribe }: Subscribable,
  queue: string,
  held: Held,
  lost: (reason: BrokerError["reason"], detail: string) => BrokerError
): Effect.Effect<Opened, BrokerError, Scope.Scope> =>
  Effect.gen(function* () {
    const calls = yield* Semaphore.make(1)
    // An interruption waits, so that it is known what was settled. A subscription is not asked to settle nothing.
    const ask = (of: () => ReadonlyArray<Delivery>, call: Broker.Subscription["extend"]) => {
      const called = Effect.suspend(() => {
        const deliveries = of()
        return deliveries.length === 0 ? Effect.succeed([]) : call(deliveries)
      })
      return Effect.uninterruptible(calls.withPermit(called))
    }
    const subscription = yield* subscribe({
      queue,
      retry,
      deadLetterQueues: [],
      onDelivery: (delivery) => held.add(delivery),
      onReconnect: (isGone = () => true) => held.lose(isGone, lost("ConnectionLost", "the connection was lost"))
    })
    const { credit, extend } = subscription
    const settle: Opened["settle"] = (deliveries, settlement) =>
      ask(
        () => deliveries,
        (all) => subscription.settle(all.map((delivery) => ({ delivery, settlement })))
      )
    yield* Effect.addFinalizer(() =>
      Effect.suspend(() => {
        credit(0)
        return settle(held.clear(), Settlement.Release())
      })
    )
    if (lease !== undefined) {
      const all = ask(() => held.all(), extend)
      const renewed = Effect.map(all, (failures) => {
        const gone = new Set(failures.flatMap(({ delivery, fate }) => (fate === "gone" ? [delivery] : [])))
        held.lose((delivery) => gone.has(delivery), lost("LeaseLost", "a lease has ended"))
      })
      const pause = Effect.sleep(lease.duration / extensions)
      yield* Effect.forkScoped(Effect.forever(Effect.andThen(pause, renewed)))
    }
    return { subscription, settle }
  })

/** Opens a browser over a subscription. It fails with `Unsupported` for delayed messages. */
export const overSubscription = (
  broker: Subscribable,
  { from, limit, queue }: Broker.BrowseOptions
): Effect.Effect<Broker.Browser, BrokerError, Scope.Scope> =>
  Effect.gen(function* () {
    const failure = (operation: string, reason: BrokerError["reason"], detail: string): BrokerError =>
      new BrokerError({ broker: broker.capabilities.broker, operation, queue, reason, detail })
    if (from === "delayed") {
      const detail = "the broker cannot show messages that wait for their delay"
      return yield* Effect.fail(failure("browse", "Unsupported", detail))
    }
    const scope = yield* Effect.scope
    const held = new Held()
    let opened: Opened | undefined
    let isWhole = true

    const open = Effect.gen(function* () {
      if (opened !== undefined || (broker.exists !== undefined && !(yield* broker.exists(queue)))) return opened
      opened = yield* subscribing(broker, queue, held, (reason, detail) => failure("browse", reason, detail))
      return opened
    }).pipe(Scope.provide(scope))

    const next = Effect.fnUntraced(function* (count: number) {
      const subscription = (yield* open)?.subscription
      if (subscription === undefined) return []
      const room = Math.min(count, limit - held.shown.size)
      isWhole = room > 0
      if (room > 0) {
        subscription.credit(held.shown.size + room)
        yield* held.gather(room)
      }
      const lost = held.takeLoss()
      if (lost !== undefined) return yield* Effect.fail(lost)
      const page = held.show(room)
      const trouble = page.length === 0 ? subscription.trouble?.() : undefined
      if (trouble !== undefined) return yield* Effect.fail(trouble.error)
      return page.map((delivery): Broker.Delayed => ({ delivery, due: undefined }))
    })

    const gone = (delivery: Delivery): Broker.SettleFailure => {
      const error = failure("remove", "LeaseLost", "the browser does not hold the message")
      return { delivery, error, fate: "gone" }
    }

    const remove = Effect.fnUntraced(function* (deliveries: ReadonlyArray<Delivery>) {
      // What is being settled is not held, lest it is extended or returned as well.
      const ours = new Set(deliveries.filter((delivery) => held.shown.delete(delivery)))
      const others = deliveries.filter((delivery) => !ours.has(delivery)).map(gone)
      if (opened === undefined || ours.size === 0) return others
      const failures = yield* opened.settle([...ours], Settlement.Ack)
      for (const { delivery, fate } of failures) if (fate !== "gone") held.shown.add(delivery)
      return [...failures, ...others]
    }, Effect.uninterruptible)

    return {
      next,
      remove,
      identify: (delivery) => opened?.subscription.identify(delivery),
      browsed: () => ({ isWhole, hidden: undefined })
    }
  })
