/**
 * Deliveries that are lost with their connection or lease, and redeliveries of the same copy. If the handler of the lost
 * delivery still runs, the redelivery replaces it. Otherwise the prior settlement is repeated on the redelivery.
 */
import * as Settlement from "../../message/Settlement.ts"
import type { Delivery } from "../../message/Delivery.ts"
import type * as Copies from "./copies.ts"
import type { Flow } from "./flow.ts"
import { isUnbegun, type Item, type InFlightCounters, type SubscriptionRef } from "./item.ts"
import * as Remembered from "./remembered.ts"
import type { Runtime } from "./runtime.ts"

export interface Redeliveries {
  /**
   * Returns what is remembered about a redelivery. `"merged"`: it replaces a delivery that is running or being settled, or
   * it is older than that delivery, and needs no further work.
   */
  readonly recognise: (delivery: Delivery) => Remembered.Known | "merged" | undefined
  readonly markLost: (item: Item) => void
  /** Removes a lost delivery. Its settlement, if any, is repeated on its redelivery. */
  readonly lose: (item: Item) => void
  /** Settles the redelivery that arrived during this settlement, which has now succeeded. */
  readonly onSettled: (settled: Item, settlement: Settlement.Settlement) => void
  /** Forgets redeliveries that arrived during a settlement and are lost too. */
  readonly onReconnect: (isGone: (delivery: Delivery) => boolean) => void
  /** Remembers the attempts of a returned message for which the broker counts too many. */
  readonly onReturned: (item: Item) => void
  /** Replaces the delivery of the item by the one that arrived during its failed settlement. */
  readonly adopt: (item: Item) => void
}

export interface Dependencies extends Pick<Runtime, "timers"> {
  readonly outlet: SubscriptionRef
  /** Whether the broker has leases, and so may redeliver a message that is still in flight. */
  readonly isLeased: boolean
  /** Whether deliveries end with their connection. The broker's count of attempts may then restart. */
  readonly isBound: boolean
  readonly flow: Pick<Flow, "update">
  readonly load: InFlightCounters
  readonly identify: Copies.Identify
  /** The deliveries whose copy the broker may redeliver. */
  readonly copies: Copies.Copies
  /** All deliveries in flight. */
  readonly items: Iterable<Item>
  readonly remove: (item: Item) => void
  /** Removes a lost delivery, unless it is running or being settled. */
  readonly onLost: (item: Item) => void
  /** Called when a delivery was removed. The caller updates the credit. */
  readonly onRemoved: (item: Item) => void
  /** Adds a delivery and settles it. `brokerAttempts` is the broker's count. */
  readonly settle: (
    delivery: Delivery,
    brokerAttempts: number,
    settlesDuplicate: boolean,
    decided: Remembered.Decided
  ) => void
}

export const make = (dependencies: Dependencies): Redeliveries => {
  const { copies, flow, isBound, isLeased, load, onLost, onRemoved, outlet, remove, settle, timers } = dependencies
  const remembered = Remembered.make(dependencies.identify)
  const left = ({ due }: Item): number => Math.max(0, due - timers.now())

  const onReturned = noting(remembered)
  const supersede = superseding(onReturned)

  const merge = (item: Item, delivery: Delivery): boolean => {
    if (item.stage === "settling") {
      // A returned message is a new delivery, unless it arrives before it is due, or while its copy exists.
      const isMerged = !goesBack(item.settlement) || isCopied(outlet, item) || item.isLost || left(item) > 0
      if (isMerged) item.pendingRedelivery = delivery
      else supersede(item)
      return isMerged
    }
    // If other consumers had the message in between, it may have to run alone, or not at all.
    if (isUnbegun(item) && Remembered.continued(delivery, before(item)).attempts > item.delivery.attempts) onLost(item)
    else replace(item, delivery)
    return item.place !== -1
  }

  const replace = (item: Item, delivery: Delivery): void => {
    item.delivery = Remembered.continued(delivery, before(item))
    item.brokerAttempts = delivery.attempts
    if (!item.isLost) return
    item.isLost = false
    load.lost--
    if (!isLeased) copies.delete(item)
    flow.update()
  }

  const repeat = (delivery: Delivery, item: Item, settlement: Settlement.Settlement, isDuplicate: boolean): void => {
    const { priorSettlement = settlement, ...decided } = Remembered.decidedOf({ ...item, settlement })
    const continued = Remembered.continued(delivery, before(item))
    settle(continued, delivery.attempts, isDuplicate, { ...decided, priorSettlement })
  }

  return {
    recognise: (delivery) => {
      const sameCopy = copies.find(delivery)
      if (sameCopy && (isOlder(delivery, sameCopy, isBound) || merge(sameCopy, delivery))) return "merged"
      if (remembered.isEmpty()) return undefined
      return !isBound && remembered.isOlder(delivery) ? "merged" : remembered.take(delivery)
    },
    markLost: (item) => {
      if (item.isLost) return
      item.isLost = true
      load.lost++
      if (!isLeased) copies.add(item)
    },
    lose: (item) => {
      const { pendingRedelivery, settlement } = item
      if (item.place === -1) return
      remove(item)
      if (pendingRedelivery && settlement) repeat(pendingRedelivery, item, settlement, false)
      else if (!item.isSuperseded) remembered.add(item)
      onRemoved(item)
    },
    onSettled: (settled, settlement) => {
      const { pendingRedelivery } = settled
      if (settled.isSuperseded) return
      const next = goesBack(settlement) ? settlement : Settlement.Ack
      if (pendingRedelivery === undefined) remembered.add({ ...settled, settlement: next })
      // Only the adapter knows whether it published a copy and must ack the original.
      else repeat(pendingRedelivery, settled, next, true)
    },
    onReconnect: (isGone) => {
      const isLost = ({ pendingRedelivery }: Item) => pendingRedelivery !== undefined && isGone(pendingRedelivery)
      for (const item of dependencies.items) if (isLost(item)) loseAgain(item)
    },
    onReturned,
    adopt: (item) => {
      const { pendingRedelivery } = item
      if (pendingRedelivery === undefined) return
      item.pendingRedelivery = undefined
      replace(item, pendingRedelivery)
    }
  }
}

const noting =
  ({ note }: Remembered.Remembered): Redeliveries["onReturned"] =>
  (item) => {
    const { delivery, isSuperseded, isUncounted, settlement, brokerAttempts } = item
    if (goesBack(settlement) && (isUncounted || brokerAttempts !== delivery.attempts) && !isSuperseded) note(item)
  }

/** Marks an item as superseded by a later delivery, which also replaces its pending redelivery. */
const superseding =
  (onReturned: Redeliveries["onReturned"]) =>
  (item: Item): void => {
    if (item.pendingRedelivery !== undefined) loseAgain(item)
    onReturned(item)
    item.isSuperseded = true
  }

/** Whether its retry publishes a copy, so a redelivery of the original is not the retry. */
const isCopied = ({ subscription }: SubscriptionRef, { settlement }: Item): boolean =>
  settlement?._tag === "Retry" && subscription?.copiesRetries === true

/** Returns the attempts from which a redelivery continues. */
const before = ({ delivery, brokerAttempts }: Item) => ({ brokerAttempts, attempts: delivery.attempts })

/** Whether a delivery was sent before the one in flight but arrived after it. It is not settled. */
const isOlder = ({ attempts }: Delivery, { isLost, brokerAttempts }: Item, isBound: boolean): boolean =>
  !(isBound && isLost) && attempts < brokerAttempts

/** Whether the settlement returns the message to its queue. */
const goesBack = (settlement: Settlement.Settlement | undefined): boolean =>
  settlement?._tag === "Retry" || settlement?._tag === "Release"

const loseAgain = (item: Item): void => {
  item.brokerAttempts = item.pendingRedelivery?.attempts ?? item.brokerAttempts
  item.pendingRedelivery = undefined
  item.hasLostAgain = true
}
