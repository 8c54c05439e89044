/**
 * The owner of every delivery in flight, from its arrival until the broker has taken its settlement: settles it, knows a
 * redelivery of it, and forgets it when it is lost.
 */
import type { Verdict } from "../../policy/Acknowledgement.ts"
import type { Delivery } from "../../message/Delivery.ts"
import * as Failure from "../../policy/Failure.ts"
import * as Settlement from "../../message/Settlement.ts"
import * as Bag from "../../adapter-kit/Bag.ts"
import type { Decider } from "./decide.ts"
import type { Flow } from "./flow.ts"
import type { Item, Load } from "./item.ts"
import * as Recovery from "./recovery.ts"
import * as Remembered from "./remembered.ts"
import type { Reporter } from "./reporter.ts"
import type { Runtime } from "./runtime.ts"
import * as Settler from "./settler.ts"

export interface Deliveries {
  /** `told` is what the broker said of its attempts. */
  readonly add: (delivery: Delivery, told: number) => Item
  /**
   * What is known of a redelivery. `"merged"`: it has taken the place of a delivery whose handler runs, or whose
   * settlement is under way, and needs nothing more.
   */
  readonly recognise: (delivery: Delivery) => Remembered.Known | "merged" | undefined
  /** Settles as the verdict, the policy and the budget say. */
  readonly conclude: (item: Item, verdict: Verdict, failure: Failure.Failure | undefined) => void
  readonly settle: (item: Item, settlement: Settlement.Settlement) => void
  /**
   * Sends what has gathered to the broker at the end of the current job of the event loop, so that handlers which end
   * together are settled together. Where the broker settles in batches and asks for a wait, that wait decides instead.
   */
  readonly flush: () => void
  /** Extends the leases of all deliveries that are not being settled. */
  readonly extendLeases: () => void
  /** Forgets the deliveries that went with their connection and that no handler has begun, and marks the others. */
  readonly onReconnect: (isGone: (delivery: Delivery) => boolean) => void
  /** Settlements that the broker did not take. */
  readonly recovery: Recovery.Recovery
  /** When the broker took the last settlement, in milliseconds since the epoch. */
  readonly lastSettled: () => number | undefined
}

export interface Dependencies extends Settler.Options, Pick<Runtime, "wallClock"> {
  /** Whether the broker has leases, so that it may deliver again what is still in flight. */
  readonly isLeased: boolean
  readonly decider: Decider
  readonly flow: Flow
  readonly load: Load
  readonly reporter: Reporter
  /** Removes an item that waits for its first run, because it is lost. */
  readonly onUnwaited: (item: Item) => void
  /** Called after deliveries have been removed; once for all that one call of the broker settled. */
  readonly onRemoved: () => void
  /** Called when a dead letter is refused because the budget is spent. */
  readonly onExhausted: () => void
}

export const make = (dependencies: Dependencies): Deliveries => {
  const { decider, flow, isLeased, load, onUnwaited, reporter, subscription, wallClock } = dependencies
  const items = Bag.make<Item>()
  const identify = (delivery: Delivery) => subscription.identify?.(delivery)
  const remembered = Remembered.make(identify)
  let lastKey = 0
  let lastSettled: number | undefined
  let isFlushing = false

  const add = (delivery: Delivery, told: number, isEcho = false): Item => {
    const item: Item = {
      delivery,
      told,
      body: undefined,
      key: ++lastKey,
      arrived: 0,
      stage: "waiting",
      settlement: undefined,
      isLost: false,
      again: undefined,
      isEcho,
      place: -1
    }
    items.add(item)
    load.inFlight++
    return item
  }

  const remove = (item: Item): void => {
    if (item.place === -1) return
    items.delete(item)
    load.inFlight--
    if (item.isLost) load.lost--
  }

  const markLost = (item: Item): void => {
    if (item.isLost) return
    item.isLost = true
    load.lost++
  }

  /** The delivery is not ours any more: what was decided about it is repeated on its redelivery. */
  const lose = (item: Item): void => {
    const { again, settlement } = item
    remove(item)
    if (again !== undefined && settlement !== undefined) repeat(again, item, settlement, false)
    else if (twinOf(item.delivery) === undefined) remembered.add(item, wallClock())
    dependencies.onRemoved()
  }

  const repeat = (
    again: Delivery,
    { delivery: { attempts }, told }: Item,
    settlement: Settlement.Settlement,
    isEcho: boolean
  ): void => {
    settle(add(Remembered.continued(again, { told, attempts }), again.attempts, isEcho), settlement)
    flush()
  }

  /** The delivery in flight of the same copy. Without leases, only a lost one can have been delivered again. */
  const twinOf = (delivery: Delivery): Item | undefined => {
    if (!isLeased && load.lost === 0) return undefined
    const name = identify(delivery)
    if (name === undefined) return undefined
    for (const item of items) {
      if ((isLeased || item.isLost) && item.delivery !== delivery && identify(item.delivery) === name) return item
    }
    return undefined
  }

  const merge = (item: Item, delivery: Delivery): boolean => {
    if (item.stage === "settling") {
      // What goes back to the queue comes again by right.
      const isEnd = item.settlement?._tag !== "Retry" && item.settlement?._tag !== "Release"
      if (isEnd) item.again = delivery
      return isEnd
    }
    const { told } = item
    item.delivery = Remembered.continued(delivery, { told, attempts: item.delivery.attempts })
    item.told = delivery.attempts
    if (item.isLost) {
      item.isLost = false
      load.lost--
      flow.update()
    }
    return true
  }

  const settle = (item: Item, settlement: Settlement.Settlement): void => {
    const { handler } = flow
    // A probe that goes back without a verdict must not be waited for.
    if (settlement._tag === "Release" && !handler.atRest) handler.signal({ _tag: "Uncounted", id: item.key })
    if (decider.spend(settlement) === "Allowed") return settler.settle(item, settlement)
    settler.settle(item, Settlement.Release())
    dependencies.onExhausted()
  }

  const settler = Settler.make({
    ...dependencies,
    onSending: ({ key }) => {
      const { broker } = flow
      if (!broker.atRest) broker.signal({ _tag: "Started", id: key })
    },
    onSettled: (item, settlement) => {
      const { broker } = flow
      if (!item.isEcho) decider.earn(settlement)
      if (!broker.atRest) broker.signal({ _tag: "Succeeded", id: item.key })
      reporter.settled(item.delivery, settlement)
      recovery.onSettled(item)
      remove(item)
      if (item.again !== undefined) repeat(item.again, item, Settlement.Ack, true)
    },
    onFailed: (item, _, failure) => recovery.onFailed(item, failure),
    onLeaseLost: (item, { error, fate }) => {
      reporter.leaseLost(item.delivery, error)
      if (fate !== "gone") return
      if (item.stage === "begun") return markLost(item)
      if (item.stage === "waiting") onUnwaited(item)
      else recovery.forget(item)
      lose(item)
    },
    onAnswered: () => {
      lastSettled = wallClock()
      dependencies.onRemoved()
    }
  })

  const recovery = Recovery.make({
    ...dependencies,
    lose,
    settleAgain: (item, settlement) => {
      settler.settle(item, settlement)
      settler.flush()
    }
  })

  const flush = Settler.gathers(dependencies)
    ? () => {}
    : () => {
        if (isFlushing) return
        isFlushing = true
        queueMicrotask(() => {
          isFlushing = false
          settler.flush()
        })
      }

  return {
    add,
    recognise: (delivery) => {
      const twin = twinOf(delivery)
      if (twin !== undefined && merge(twin, delivery)) return "merged"
      return remembered.isEmpty() ? undefined : remembered.take(delivery, wallClock())
    },
    conclude: (item, verdict, thrown) => {
      const { handler } = flow
      const own = verdict._tag === "Retry" ? verdict.failed : undefined
      const failure = own === undefined ? thrown : Failure.make(own.error, wallClock())
      if (own !== undefined) reporter.failed(item.delivery, failure!, false)
      const settlement = decider.settlement(item.delivery, verdict, failure)
      // The signal comes first, so that the credit is taken away before the retry goes out.
      const signal = decider.signal(verdict, failure)
      if (signal === "Failed" || !handler.atRest) handler.signal({ _tag: signal, id: item.key })
      settle(item, settlement)
    },
    settle,
    flush,
    extendLeases: () => settler.extend(items),
    onReconnect: (isGone) => {
      for (const item of items) {
        if (!isGone(item.delivery)) continue
        markLost(item)
        if (item.stage === "begun" || item.stage === "settling") continue
        if (item.stage === "waiting") onUnwaited(item)
        else recovery.forget(item)
        lose(item)
      }
    },
    recovery,
    lastSettled: () => lastSettled
  }
}
