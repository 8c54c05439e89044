/**
 * Every delivery in flight, from its arrival until the broker has taken its settlement: settles it, and remembers what
 * the broker may not have heard of.
 */
import type { Verdict } from "../../policy/Acknowledgement.ts"
import type { Delivery } from "../../message/Delivery.ts"
import type { Failure } from "../../policy/Failure.ts"
import * as Settlement from "../../message/Settlement.ts"
import * as Bag from "../../adapter-kit/Bag.ts"
import { coalesce } from "./coalesce.ts"
import type { Decider } from "./decide.ts"
import type { Gates } from "./gates.ts"
import type { Item } from "./item.ts"
import * as Recovery from "./recovery.ts"
import type { Reporter } from "./reporter.ts"
import type { Runtime } from "./runtime.ts"
import * as Settler from "./settler.ts"
import * as UnconfirmedAcks from "./unconfirmedAcks.ts"

export interface InFlight {
  readonly add: (delivery: Delivery) => Item
  /** Settles as the verdict, the policy and the budget say. */
  readonly conclude: (item: Item, verdict: Verdict, failure: Failure | undefined) => void
  readonly settle: (item: Item, settlement: Settlement.Settlement) => void
  /**
   * Sends what has gathered to the broker at the end of the current job of the event loop, so that handlers which end
   * together are settled together. Where the broker settles in batches and asks for a wait, that wait decides instead.
   */
  readonly flush: () => void
  /** Extends the leases of all deliveries that are not being settled. */
  readonly extendLeases: () => void
  /** Removes a delivery that is not ours any more, without settling it. */
  readonly forget: (item: Item) => void
  /** True when this process has handled the message already and only the broker does not know. */
  readonly isAcked: (delivery: Delivery) => boolean
  /** Whether {@link isAcked} can be true of any delivery. */
  readonly remembersAcks: () => boolean
  /** Number of deliveries in flight. */
  readonly size: () => number
  /** Number of those among them that a lost connection delivered. */
  readonly stale: () => number
  /** True of a delivery of a lost connection: the broker delivers its message again. */
  readonly isStale: (item: Item) => boolean
  /** When the broker took the last settlement, in milliseconds since the epoch. */
  readonly lastSettled: () => number | undefined
  /** Marks as stale the deliveries in flight of which `isGone` is true. */
  readonly onReconnect: (isGone: (delivery: Delivery) => boolean) => void
}

export interface Dependencies extends Settler.Options, Pick<Runtime, "wallClock"> {
  /** Whether the broker has leases, so that it may deliver again what is still in flight. */
  readonly isLeased: boolean
  readonly decider: Decider
  readonly gates: Pick<Gates, "handler" | "broker">
  readonly reporter: Reporter
  /** Called after deliveries have been removed; once for all that one call of the broker settled. */
  readonly onRemoved: () => void
  /** Called when a dead letter is refused because the budget is spent. */
  readonly onExhausted: () => void
}

export const make = (dependencies: Dependencies): InFlight => {
  const { decider, gates, reporter, timers } = dependencies
  const items = Bag.make<Item>()
  const stale = new Set<Item>()
  const acks = UnconfirmedAcks.make()
  let lastKey = 0
  let lastSettled: number | undefined

  const remove = (item: Item): void => {
    items.delete(item)
    if (stale.size > 0) stale.delete(item)
  }

  const forget = (item: Item): void => {
    remove(item)
    dependencies.onRemoved()
  }

  const settle = (item: Item, settlement: Settlement.Settlement): void => {
    // It may have been delivered again already.
    if (dependencies.isLeased || stale.has(item)) acks.remember(item.delivery, settlement)
    // A probe that goes back without a verdict must not be waited for.
    if (settlement._tag === "Release") gates.handler.signal({ _tag: "Uncounted", id: item.key })
    if (decider.spend(settlement) === "Allowed") return settler.settle(item, settlement)
    settler.settle(item, Settlement.Release())
    dependencies.onExhausted()
  }

  const release = (item: Item): void => {
    settler.settle(item, Settlement.Release())
    settler.flush()
  }

  const settler = Settler.make({
    ...dependencies,
    onSettled: (item, settlement) => {
      acks.confirm(item.delivery, settlement)
      gates.broker.signal({ _tag: "Succeeded", id: item.key })
      reporter.settled(item.delivery, settlement)
      remove(item)
    },
    onFailed: Recovery.make({ acks, decider, forget, gates, release, reporter, timers }),
    onLeaseLost: (item, error) => reporter.leaseLost(item.delivery, error),
    onAnswered: () => {
      lastSettled = dependencies.wallClock()
      dependencies.onRemoved()
    },
    // Remembered before the broker answers: the redelivery may be faster than the news that the ack was lost.
    onWaiting: (waiting) => {
      for (const { delivery, settlement } of waiting) acks.remember(delivery, settlement)
    }
  })

  return {
    add: (delivery) => {
      const item: Item = { delivery, body: undefined, key: ++lastKey, arrived: 0, settlement: undefined, place: -1 }
      items.add(item)
      return item
    },
    conclude: (item, verdict, failure) => {
      const settlement = decider.settlement(item.delivery, verdict, failure)
      // The signal comes first, so that the credit is taken away before the retry goes out.
      gates.handler.signal({ _tag: decider.signal(verdict, failure), id: item.key })
      settle(item, settlement)
    },
    settle,
    flush: Settler.gathers(dependencies) ? () => {} : coalesce(queueMicrotask, settler.flush),
    extendLeases: () => settler.extend(items),
    forget,
    isAcked: acks.has,
    remembersAcks: () => !acks.isEmpty(),
    size: items.size,
    stale: () => stale.size,
    isStale: (item) => stale.has(item),
    lastSettled: () => lastSettled,
    onReconnect: (isGone) => {
      for (const item of items) if (isGone(item.delivery)) stale.add(item)
    }
  }
}
