/**
 * The owner of every delivery in flight, from its arrival until it is settled or lost.
 */
import type { Verdict } from "../../policy/Acknowledgement.ts"
import type { Delivery } from "../../message/Delivery.ts"
import type { Failure } from "../../policy/Failure.ts"
import * as Settlement from "../../message/Settlement.ts"
import * as Bag from "../../runtime/Bag.ts"
import * as Copies from "./copies.ts"
import type { Decider } from "./decide.ts"
import type { Flow } from "./flow.ts"
import type { DeliveryId } from "../../policy/BackoffState.ts"
import { isUnbegun, type Item, type InFlightCounters } from "./item.ts"
import * as Recovery from "./recovery.ts"
import * as Redeliveries from "./redeliveries.ts"
import * as Remembered from "./remembered.ts"
import type { Reporter } from "./reporter.ts"
import type { Runtime } from "./runtime.ts"
import * as Settler from "./settler.ts"

export interface Deliveries extends Pick<Redeliveries.Redeliveries, "recognise"> {
  /** `brokerAttempts` is the broker's count. */
  readonly add: (delivery: Delivery, brokerAttempts: number) => Item
  /** Repeats the prior settlement of a redelivery. */
  readonly settleKnown: (item: Item) => void
  /** Settles as the verdict, the policy and the budget decide, and returns the settlement. */
  readonly conclude: (item: Item, verdict: Verdict, failure: Failure | undefined) => Settlement.Settlement
  /** Settles, or releases the message if the budget is spent. Returns the settlement. */
  readonly settle: (item: Item, settlement: Settlement.Settlement) => Settlement.Settlement
  /** Ends a run: sends its settlements, together with all others of the current job of the event loop. */
  readonly flush: () => void
  /** Whether this settlement keeps the message's position in its queue, so later messages of its group wait for it. */
  readonly keepsPlace: (settlement: Settlement.Settlement) => boolean
  /** Extends the leases of all deliveries that are not being settled. */
  readonly extendLeases: () => void
  /** Removes the lost deliveries that no handler has begun, and marks the other lost ones. */
  readonly onReconnect: (isGone: (delivery: Delivery) => boolean) => void
  /** Failed settlements. */
  readonly recovery: Recovery.Recovery
  /** When the last settlement succeeded, in milliseconds since the epoch. */
  readonly lastSettled: () => number | undefined
}

export interface Dependencies extends Settler.Options, Pick<Runtime, "wallClock"> {
  /** Whether the broker has leases, and so may redeliver a message that is still in flight. */
  readonly isLeased: boolean
  /** Whether deliveries end with their connection. */
  readonly isBound: boolean
  /** Whether the broker counts a released delivery as an attempt. */
  readonly countsReleases: boolean
  readonly decider: Decider
  readonly flow: Flow
  readonly load: InFlightCounters
  readonly reporter: Reporter
  /** Removes a lost item from the batcher. */
  readonly onUnwaited: (item: Item) => void
  /** Called when a message of a group is no longer in flight. */
  readonly onEnded: (item: Item, isBack: boolean) => void
  /** Called when a dead letter is refused because the budget is spent. */
  readonly onExhausted: () => void
}

/** Makes the item of a new delivery. `brokerAttempts` is the broker's count. */
export const itemOf = (
  delivery: Delivery,
  brokerAttempts: number,
  key: DeliveryId,
  settlesDuplicate: boolean
): Item => ({
  delivery,
  brokerAttempts,
  body: undefined,
  headers: undefined,
  key,
  name: undefined,
  number: -1,
  arrived: 0,
  stage: "waiting",
  settlement: undefined,
  isLost: false,
  priorSettlement: undefined,
  due: 0,
  losses: 0,
  tryAt: 0,
  pendingRedelivery: undefined,
  hasLostAgain: false,
  isSuperseded: false,
  settlesDuplicate,
  group: undefined,
  isFollowing: false,
  isUncounted: false,
  place: -1
})

/** Long, because every end of a delivery passes through here. */
export const make = (dependencies: Dependencies): Deliveries => {
  const { countsReleases, decider, flow, load, onEnded, onUnwaited, reporter } = dependencies
  const identify = Copies.naming(dependencies.outlet, reporter)
  const copies = Copies.make(identify)
  const { add, items, remove } = tracking(dependencies, copies)
  let lastSettled: number | undefined

  const keepsPlace: Deliveries["keepsPlace"] = ({ _tag }) =>
    _tag === "Release" || (_tag === "Retry" && dependencies.outlet.subscription?.copiesRetries !== true)

  const settle: Deliveries["settle"] = (item, settlement) => {
    if ("delay" in settlement && settlement.delay > 0) item.due = dependencies.timers.now() + settlement.delay
    // The gate must not wait for a probe that is returned without a verdict.
    if (settlement._tag === "Release" && !flow.handler.atRest) flow.handler.signal({ _tag: "Uncounted", id: item.key })
    const allowed =
      settlement._tag === "Ack" || decider.spend(settlement) === "Allowed" ? settlement : Settlement.Release()
    const isBegun = item.stage === "begun" && allowed._tag === "Release"
    // A repeated settlement counts as the first one did.
    if (allowed._tag === "Release" && countsReleases && item.priorSettlement === undefined && isUnbegun(item)) {
      item.isUncounted = true
    }
    settler.settle(item, isBegun ? { ...allowed, isBegun } : allowed)
    // The redelivery may arrive before the broker's answer.
    if (allowed._tag !== "Ack") redeliveries.onReturned(item)
    if (allowed !== settlement) dependencies.onExhausted()
    return allowed
  }

  const onSettled = (item: Item, settlement: Settlement.Settlement): void => {
    if (!item.settlesDuplicate) decider.earn(settlement)
    if (!flow.broker.atRest) flow.broker.signal({ _tag: "Succeeded", id: item.key })
    if (reporter.isWatched || settlement._tag !== "Ack") reporter.settled(item.delivery, settlement)
    if (load.kept > 0) recovery.onSettled(item)
    remove(item)
    if (item.pendingRedelivery !== undefined || item.hasLostAgain) redeliveries.onSettled(item, settlement)
    if (item.group !== undefined) onEnded(item, keepsPlace(settlement))
  }

  const onLost = (item: Item): void => {
    redeliveries.markLost(item)
    if (item.stage === "waiting") onUnwaited(item)
    else if (item.stage === "kept") recovery.forget(item)
    // In the other stages, the handler or the settlement ends the item.
    else if (item.stage !== "decoding") return
    redeliveries.lose(item)
  }

  const settler = Settler.make({
    ...dependencies,
    onSending: ({ key }) => flow.broker.atRest || flow.broker.signal({ _tag: "Started", id: key }),
    onSettled,
    onFailed: (item, _, failure) => recovery.onFailed(item, failure),
    onLeaseLost: (item, { error, fate }) => {
      reporter.leaseLost(item.delivery, error)
      if (fate === "lost") onLost(item)
    },
    onAnswered: (hasSettled) => {
      if (hasSettled) lastSettled = dependencies.wallClock()
      flow.update()
      onMoved(dependencies)
    },
    onExtended: flow.update
  })
  const redeliveries = Redeliveries.make({
    ...dependencies,
    identify,
    copies,
    items,
    remove,
    onLost,
    onRemoved: (item) => {
      if (item.group !== undefined) onEnded(item, true)
      onMoved(dependencies)
    },
    settle: (delivery, brokerAttempts, settlesDuplicate, decided) =>
      settleKnown(Object.assign(add(delivery, brokerAttempts, settlesDuplicate), decided))
  })
  const recovery = Recovery.make({
    ...dependencies,
    redeliveries,
    settleAgain: (item, settlement) => {
      settle(item, settlement)
      settler.flush()
    }
  })
  /** After repeated losses the settlement waits, so loss and redelivery do not alternate without a pause. */
  const settleKnown: Deliveries["settleKnown"] = (item) => {
    const now = dependencies.timers.now()
    if (item.tryAt > now) return recovery.settleLater(item)
    settle(item, Remembered.remaining(item.priorSettlement!, item.due - now))
    settler.flushSoon()
  }

  const { conclude, endRun } = concluding(dependencies, settle)

  return {
    add,
    settleKnown,
    recognise: redeliveries.recognise,
    conclude,
    settle,
    flush: () => {
      endRun()
      settler.flushSoon()
    },
    keepsPlace,
    extendLeases: () => settler.extend(items),
    onReconnect: (isGone) => {
      for (const item of items) if (isGone(item.delivery)) onLost(item)
      redeliveries.onReconnect(isGone)
    },
    recovery,
    lastSettled: () => lastSettled
  }
}

/** All deliveries in flight. */
const tracking = ({ isLeased, load }: Dependencies, copies: Copies.Copies) => {
  const items = Bag.make<Item>()
  let lastKey = 0
  return {
    items,
    add: (delivery: Delivery, brokerAttempts: number, settlesDuplicate = false): Item => {
      const item = itemOf(delivery, brokerAttempts, ++lastKey, settlesDuplicate)
      items.add(item)
      if (isLeased) copies.add(item)
      load.inFlight++
      return item
    },
    remove: (item: Item): void => {
      if (item.place === -1) return
      items.delete(item)
      if (item.name !== undefined) copies.delete(item)
      load.inFlight--
      if (item.isLost) load.lost--
      if (item.stage === "decoding") load.decoding--
    }
  }
}

const concluding = (dependencies: Dependencies, settle: Deliveries["settle"]) => {
  const { decider, flow, reporter } = dependencies
  /** Whether the handler's error or a call on the batch has failed a message of the current run: others may fail the same way. */
  let hasFailedAsWhole = false

  const conclude: Deliveries["conclude"] = (item, verdict, thrown) => {
    if (verdict._tag === "Ack" && flow.handler.atRest) return settle(item, Settlement.Ack)
    const failure = decider.failure(verdict, thrown)
    if (failure !== undefined && failure !== thrown) reporter.failed(item.delivery, failure, false)
    const settlement = decider.settlement(item.delivery, verdict, failure)
    // Signal first, to lower the credit before the retry is sent.
    const signal = decider.signal(verdict, failure)
    if (signal === "Failed") {
      const isWhole = verdict.by !== "message"
      flow.handler.signal({ _tag: signal, id: item.key, isRepeated: isWhole && hasFailedAsWhole })
      if (isWhole) hasFailedAsWhole = true
    } else if (!flow.handler.atRest) flow.handler.signal({ _tag: signal, id: item.key })
    return settle(item, settlement)
  }

  return { conclude, endRun: () => void (hasFailedAsWhole = false) }
}

/** Must be called after deliveries have been removed. */
const onMoved = ({ load, timers }: Dependencies): void => {
  load.lastMoved = timers.now()
  load.onMoved?.()
}
