/**
 * The memory of copies that were lost with their connection or lease: which settlement was asked for them, and how many
 * attempts they had. When the broker delivers such a copy again, the settlement is repeated, and no handler
 * sees it; a delivery that no handler had begun has cost no attempt.
 */
import * as BoundedMap from "../../runtime/BoundedMap.ts"
import type { Delivery } from "../../message/Delivery.ts"
import * as Settlement from "../../message/Settlement.ts"
import type { Item } from "./item.ts"

/** The settlement that was decided on deliveries before, and when it may be tried. */
export type Decided = Pick<Item, "priorSettlement" | "due" | "losses" | "tryAt">

/** The delivery with the attempts that it really has, and what was decided already. */
export interface Known {
  readonly delivery: Delivery
  readonly decided: Decided
}

export interface Remembered {
  /** Remembers an item that is lost. */
  readonly add: (item: Item) => void
  /** Remembers of an item that goes back how many attempts the broker has counted too many. */
  readonly note: (item: Item) => void
  /** Whether a delivery was handed out before the one that is remembered of its copy, and only came after it. */
  readonly isOlder: (delivery: Delivery) => boolean
  /** Takes out of the memory what is known of a redelivery; `undefined` when nothing is. */
  readonly take: (delivery: Delivery) => Known | undefined
  readonly isEmpty: () => boolean
}

interface Memory {
  readonly name: string
  readonly brokerAttempts: number
  readonly attempts: number
  readonly decided: Decided
  readonly id: string
  /** Whether a delivery was lost; else only its attempts are remembered. */
  readonly isLost: boolean
}

const undecided: Decided = { priorSettlement: undefined, due: 0, losses: 0, tryAt: 0 }

/** Number of copies that are remembered at least; the oldest are forgotten first. */
const limit = 10_000

/**
 * The delivery with the attempts that its predecessor had: that came to no end, so that this is the same attempt. Where
 * others were delivered in between, these count.
 */
export const continued = (delivery: Delivery, before: Pick<Memory, "brokerAttempts" | "attempts">): Delivery => {
  const attempts = before.attempts + Math.max(0, delivery.attempts - before.brokerAttempts - 1)
  // A spread takes no getter of a class along.
  return attempts === delivery.attempts ? delivery : { ...delivery, attempts, native: delivery.native }
}

/** A release decides nothing. */
const decision = (settlement: Settlement.Settlement | undefined): Settlement.Settlement | undefined =>
  settlement?._tag === "Release" ? undefined : settlement

/** The decision of an item: on this delivery or, where this one goes back unrun, on those before it. */
export const decidedOf = ({ due, priorSettlement, losses, settlement, tryAt }: Item): Decided => ({
  priorSettlement: decision(settlement) ?? decision(priorSettlement),
  due,
  losses,
  tryAt
})

/** The settlement with what is left of its delay. */
export const remaining = (settlement: Settlement.Settlement, left: number): Settlement.Settlement =>
  settlement._tag === "Retry"
    ? Settlement.Retry(Math.min(settlement.delay, Math.max(0, left)), settlement.error)
    : settlement

/** `identify` is the subscription's. */
export const make = (identify: (delivery: Delivery) => string | undefined): Remembered => {
  const known = BoundedMap.make<Memory>(limit)
  const find = (delivery: Delivery): Memory | undefined => {
    const name = identify(delivery)
    const found = name === undefined ? undefined : known.get(name)
    return found?.id === delivery.metadata.id ? found : undefined
  }
  return {
    add: (item) => {
      const name = identify(item.delivery)
      if (name === undefined) return
      const { delivery, brokerAttempts } = item
      // Two copies of one name cannot be told apart, so that neither is settled without a run.
      const isUnsure = known.get(name)?.isLost === true
      known.set(name, {
        name,
        brokerAttempts,
        attempts: delivery.attempts,
        decided: isUnsure ? undecided : decidedOf(item),
        id: delivery.metadata.id,
        isLost: true
      })
    },
    note: (item) => {
      const { delivery, isUncounted, settlement, brokerAttempts } = item
      const name = identify(delivery)
      const { attempts, metadata } = delivery
      if (name === undefined) return
      // Unlike one that is lost or was not run, the next delivery is another attempt, unless the broker does not count this
      // one.
      const before = {
        name,
        brokerAttempts: isUncounted ? brokerAttempts : brokerAttempts - 1,
        attempts,
        id: metadata.id
      }
      // A retry that the broker has taken is done with.
      const decided = settlement?._tag === "Retry" ? undecided : decidedOf(item)
      known.set(name, { ...before, decided, isLost: false })
    },
    isOlder: (delivery) => delivery.attempts < (find(delivery)?.brokerAttempts ?? 0),
    take: (delivery) => {
      const found = find(delivery)
      if (found === undefined) return undefined
      known.delete(found.name)
      return { delivery: continued(delivery, found), decided: found.decided }
    },
    isEmpty: known.isEmpty
  }
}
