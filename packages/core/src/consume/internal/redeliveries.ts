/**
 * Deliveries that are lost with their connection or lease, and redeliveries of the same copy. A redelivery takes the place
 * of one whose handler still runs; else the settlement that was decided is repeated on it.
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
   * Tells what is known of a redelivery. `"merged"`: it has taken the place of a delivery whose handler runs, or whose
   * settlement is under way, or it came after a later one, and needs nothing more.
   */
  readonly recognise: (delivery: Delivery) => Remembered.Known | "merged" | undefined
  readonly markLost: (item: Item) => void
  /** Removes a delivery that is not ours any more. Its settlement, if there is one, is repeated on its redelivery. */
  readonly lose: (item: Item) => void
  /** Settles a redelivery that came while the settlement was under way, once the broker has taken that. */
  readonly onSettled: (settled: Item, settlement: Settlement.Settlement) => void
  /** Forgets the redeliveries that came while a settlement was under way, and are gone as well. */
  readonly onReconnect: (isGone: (delivery: Delivery) => boolean) => void
  /** Remembers, of a message that goes back with fewer attempts than the broker counts, how many the broker has too many. */
  readonly onReturned: (item: Item) => void
  /** Gives the item the redelivery that came while its settlement, which has failed, was under way. */
  readonly adopt: (item: Item) => void
}

export interface Dependencies extends Pick<Runtime, "timers"> {
  readonly outlet: SubscriptionRef
  /** Whether the broker has leases, so that it may deliver again what is still in flight. */
  readonly isLeased: boolean
  /** Whether deliveries end with their connection, and with them the broker's count of them may end. */
  readonly isBound: boolean
  readonly flow: Pick<Flow, "update">
  readonly load: InFlightCounters
  readonly identify: Copies.Identify
  /** Those of which the broker may deliver the same copy again. */
  readonly copies: Copies.Copies
  /** All deliveries in flight. */
  readonly items: Iterable<Item>
  readonly remove: (item: Item) => void
  /** Forgets a delivery whose lease or connection is lost, unless a handler or the broker has it. */
  readonly onLost: (item: Item) => void
  /** Called when a delivery has been removed. The credit is updated once for all that are. */
  readonly onRemoved: (item: Item) => void
  /** Takes a delivery in, and settles it. `brokerAttempts` is the broker's count. */
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
      // What goes back to the queue comes again by right, but not before its time, and not beside its copy.
      const isMerged = !goesBack(item.settlement) || isCopied(outlet, item) || item.isLost || left(item) > 0
      if (isMerged) item.pendingRedelivery = delivery
      else supersede(item)
      return isMerged
    }
    // Where others have had it meanwhile, it may have to run alone, or not at all.
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

  const repeat = (again: Delivery, item: Item, settlement: Settlement.Settlement, isDuplicate: boolean): void => {
    const { priorSettlement = settlement, ...decided } = Remembered.decidedOf({ ...item, settlement })
    const continued = Remembered.continued(again, before(item))
    settle(continued, again.attempts, isDuplicate, { ...decided, priorSettlement })
  }

  return {
    recognise: (delivery) => {
      const twin = copies.find(delivery)
      if (twin && (isOlder(delivery, twin, isBound) || merge(twin, delivery))) return "merged"
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
      // Only the adapter knows whether the message went back as a copy, so that its original must be ended.
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

/** A later delivery knows better than an item, and than what came while that was settled. */
const superseding =
  (onReturned: Redeliveries["onReturned"]) =>
  (item: Item): void => {
    if (item.pendingRedelivery !== undefined) loseAgain(item)
    onReturned(item)
    item.isSuperseded = true
  }

/** Whether its retry is a message of its own, so that the original does not come again by right. */
const isCopied = ({ subscription }: SubscriptionRef, { settlement }: Item): boolean =>
  settlement?._tag === "Retry" && subscription?.copiesRetries === true

/** The attempts of an item that a redelivery goes on with. */
const before = ({ delivery, brokerAttempts }: Item) => ({ brokerAttempts, attempts: delivery.attempts })

/** Whether a delivery was handed out before the one that is in flight, and only came after it: nobody settles it. */
const isOlder = ({ attempts }: Delivery, { isLost, brokerAttempts }: Item, isBound: boolean): boolean =>
  !(isBound && isLost) && attempts < brokerAttempts

/** Whether the message comes again by right. */
const goesBack = (settlement: Settlement.Settlement | undefined): boolean =>
  settlement?._tag === "Retry" || settlement?._tag === "Release"

const loseAgain = (item: Item): void => {
  item.brokerAttempts = item.pendingRedelivery?.attempts ?? item.brokerAttempts
  item.pendingRedelivery = undefined
  item.hasLostAgain = true
}
