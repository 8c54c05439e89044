/**
 * Every delivery in our hands, from its arrival until the broker has taken its settlement: what becomes of it, and what
 * to do when the broker does not take it.
 */
import type { Verdict } from "../../policy/Acknowledgement.ts"
import type { BrokerError } from "../../port/BrokerError.ts"
import type { Delivery } from "../../message/Delivery.ts"
import type { Failure } from "../../policy/Failure.ts"
import * as Settlement from "../../message/Settlement.ts"
import * as Bag from "../../adapter-kit/Bag.ts"
import type { Gate } from "./gate.ts"
import type { Item } from "./item.ts"
import type { Judge } from "./decide.ts"
import * as BoundedMap from "../../adapter-kit/BoundedMap.ts"
import type { Reporter } from "./reporter.ts"
import * as Settler from "./settler.ts"

export interface Outbox {
  readonly arrive: (delivery: Delivery) => Item
  /** Decides on a verdict and settles. */
  readonly conclude: (item: Item, verdict: Verdict, failure: Failure | undefined) => void
  readonly settle: (item: Item, settlement: Settlement.Settlement) => void
  /**
   * Hands over what has gathered once nothing else is to be decided at the moment, so that handlers which end together
   * are settled together. A broker that would rather have more gets it within `wait` milliseconds.
   */
  readonly flush: () => void
  /** Extends the leases of all that is not being settled. */
  readonly extendLeases: () => void
  /** Forgets a delivery that is not ours any more. */
  readonly forget: (item: Item) => void
  /** True when this process has handled the message already and only the broker does not know. */
  readonly isAcked: (delivery: Delivery) => boolean
  /** Whether {@link isAcked} can be true of any delivery. */
  readonly remembersAcks: () => boolean
  /** Deliveries in our hands. */
  readonly size: () => number
  /** Those of them that a lost connection delivered. */
  readonly stale: () => number
  /** When the broker took the last settlement, in milliseconds since the epoch. */
  readonly lastSettled: () => number | undefined
  /** The connection that delivered these is another one now. */
  readonly onReconnect: (isGone: (delivery: Delivery) => boolean) => void
}

/** Milliseconds after which a release is tried again that the broker did not take. */
const releaseAgainAfter = 1000

/** The same for every delivery of one publish; a producer that uses an id again publishes another message. */
const publishOf = ({ metadata: { firstPublished, id } }: Delivery): string => `${firstPublished} ${id}`

/** Message ids whose lost ack is remembered. */
const rememberLimit = 10_000

export const make = (
  env: Pick<
    Parameters<typeof Settler.make>[0],
    "broker" | "subscription" | "fork" | "timers" | "batch" | "wait" | "watch"
  > & {
    /** Whether a delivery may come again while it is in our hands. */
    readonly isLeased: boolean
    readonly judge: Judge
    /** Milliseconds since the epoch. */
    readonly wallClock: () => number
    /** For handlers that fail. */
    readonly handlerGate: Gate
    /** For a broker that does not take retries and dead letters. */
    readonly brokerGate: Gate
    readonly reporter: Reporter
    readonly onGone: () => void
    /** A dead letter too many. */
    readonly onExhausted: () => void
  }
): Outbox => {
  const { brokerGate, handlerGate, judge, reporter, timers } = env
  const inHand = Bag.make<Item>()
  const stale = new Set<Item>()
  const gathers = env.batch > 1 && env.wait > 0
  const acked = BoundedMap.make<true>(rememberLimit)
  let arrivals = 0
  let lastSettled: number | undefined

  let isFlushing = false

  const flush = (): void => {
    if (gathers || isFlushing) return
    isFlushing = true
    queueMicrotask(() => {
      isFlushing = false
      settler.flush()
    })
  }

  const leave = (item: Item): void => {
    inHand.delete(item)
    if (stale.size > 0) stale.delete(item)
  }

  const forget = (item: Item): void => {
    leave(item)
    env.onGone()
  }

  /** Remembered before the broker answers: the redelivery may be faster than the news that the ack was lost. */
  const remember = (item: Item, settlement: Settlement.Settlement): void => {
    if (settlement._tag === "Ack") acked.set(publishOf(item.delivery), true)
  }

  const settle = (item: Item, settlement: Settlement.Settlement): void => {
    // It may be here again already.
    if (env.isLeased || stale.has(item)) remember(item, settlement)
    // A probe that goes back unanswered must not be waited for.
    if (settlement._tag === "Release") handlerGate.signal({ _tag: "Uncounted", id: item.key })
    if (judge.spend(settlement) === "Allowed") return settler.settle(item, settlement)
    settler.settle(item, Settlement.Release())
    env.onExhausted()
  }

  const onSettled = (item: Item, settlement: Settlement.Settlement): void => {
    if (settlement._tag === "Ack" && !acked.isEmpty()) acked.delete(publishOf(item.delivery))
    brokerGate.signal({ _tag: "Succeeded", id: item.key })
    reporter.settled(item.delivery, settlement)
    leave(item)
  }

  const onFailed = (item: Item, settlement: Settlement.Settlement, error: BrokerError): void => {
    remember(item, settlement)
    reporter.settleFailed(item.delivery, settlement, error)
    if (error.reason === "LeaseLost") handlerGate.signal({ _tag: "Failed", id: item.key })
    const isGone = error.reason === "LeaseLost" || error.reason === "ConnectionLost"
    // Of whether the broker takes settlements, one that is gone tells nothing; were it the probe, it must not be waited
    // for.
    brokerGate.signal({ _tag: isGone ? "Uncounted" : "Failed", id: item.key })
    if (isGone) return forget(item)
    // After a timeout, nobody knows.
    if (error.reason !== "Timeout") judge.refund(settlement)
    // The broker still counts it as ours, so that only giving it back makes it come again.
    if (settlement._tag !== "Release") return release(item)
    if (error.isRetryable) timers.after(releaseAgainAfter, () => release(item))
    else forget(item)
  }

  const release = (item: Item): void => {
    settler.settle(item, Settlement.Release())
    settler.flush()
  }

  const settler = Settler.make({
    ...env,
    onSettled,
    onFailed,
    onLeaseLost: (item, error) => reporter.leaseLost(item.delivery, error),
    onAnswered: () => {
      lastSettled = env.wallClock()
      env.onGone()
    },
    onWaiting: (items) => {
      for (const item of items) remember(item, item.settlement)
    }
  })

  return {
    arrive: (delivery) => {
      const item: Item = {
        delivery,
        body: undefined,
        key: ++arrivals,
        arrived: 0,
        settlement: undefined,
        place: -1
      }
      inHand.add(item)
      return item
    },
    conclude: (item, verdict, failure) => {
      const settlement = judge.settlement(item.delivery, verdict, failure)
      // The credit is taken away before the retry goes out: the signal comes first.
      handlerGate.signal({ _tag: judge.signal(verdict, failure), id: item.key })
      settle(item, settlement)
    },
    settle,
    flush,
    extendLeases: () => settler.extend(inHand),
    forget,
    remembersAcks: () => !acked.isEmpty(),
    isAcked: (delivery) => !acked.isEmpty() && acked.has(publishOf(delivery)),
    size: inHand.size,
    stale: () => stale.size,
    lastSettled: () => lastSettled,
    onReconnect: (isGone) => {
      for (const item of inHand) if (isGone(item.delivery)) stale.add(item)
    }
  }
}
