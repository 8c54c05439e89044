/**
 * Remembers copies that were lost with their connection or lease: their settlement and their attempts. When the broker
 * redelivers such a copy, the settlement is repeated, and no handler runs. A delivery that no handler had begun costs no
 * attempt.
 */
import * as BoundedMap from "../../runtime/BoundedMap.ts"
import type { Delivery } from "../../message/Delivery.ts"
import * as Settlement from "../../message/Settlement.ts"
import type { Item } from "./item.ts"

/** The settlement that was decided on earlier deliveries, and when it may be retried. */
export type Decided = Pick<Item, "priorSettlement" | "due" | "losses" | "tryAt">

/** A redelivery with its corrected attempts, and the prior decision. */
export interface Known {
  readonly delivery: Delivery
  readonly decided: Decided
}

export interface Remembered {
  /** Remembers a lost item. */
  readonly add: (item: Item) => void
  /** Remembers the attempts of a returned item for which the broker counts too many. */
  readonly note: (item: Item) => void
  /** Whether a delivery was sent before the remembered one of its copy but arrived after it. */
  readonly isOlder: (delivery: Delivery) => boolean
  /** Removes and returns what is remembered about a redelivery; `undefined` if nothing is. */
  readonly take: (delivery: Delivery) => Known | undefined
  readonly isEmpty: () => boolean
}

interface Memory {
  readonly name: string
  readonly brokerAttempts: number
  readonly attempts: number
  readonly decided: Decided
  readonly id: string
  /** Whether a delivery was lost; otherwise only its attempts are remembered. */
  readonly isLost: boolean
}

const undecided: Decided = { priorSettlement: undefined, due: 0, losses: 0, tryAt: 0 }

/** The least number of copies to remember; the oldest are forgotten first. */
const limit = 10_000

/**
 * Returns the delivery with the attempts of its predecessor, because an unfinished delivery and its redelivery are one
 * attempt. Deliveries to other consumers in between count.
 */
export const continued = (delivery: Delivery, before: Pick<Memory, "brokerAttempts" | "attempts">): Delivery => {
  const attempts = before.attempts + Math.max(0, delivery.attempts - before.brokerAttempts - 1)
  // `native` may be a getter of a class, which a spread does not copy.
  return attempts === delivery.attempts ? delivery : { ...delivery, attempts, native: delivery.native }
}

/** A release decides nothing. */
const decision = (settlement: Settlement.Settlement | undefined): Settlement.Settlement | undefined =>
  settlement?._tag === "Release" ? undefined : settlement

/** Returns the decision of an item: on this delivery or, if it is released, on earlier ones. */
export const decidedOf = ({ due, priorSettlement, losses, settlement, tryAt }: Item): Decided => ({
  priorSettlement: decision(settlement) ?? decision(priorSettlement),
  due,
  losses,
  tryAt
})

/** Returns the settlement with the rest of its delay. */
export const remaining = (settlement: Settlement.Settlement, left: number): Settlement.Settlement =>
  settlement._tag === "Retry"
    ? Settlement.Retry(Math.min(settlement.delay, Math.max(0, left)), settlement.error)
    : settlement

/** `identify`: see `Subscription.identify`. */
export const make = (identify: (delivery: Delivery) => string | undefined): Remembered => {
  const memories = BoundedMap.make<Memory>(limit)
  const find = (delivery: Delivery): Memory | undefined => {
    const name = identify(delivery)
    const found = name === undefined ? undefined : memories.get(name)
    return found?.id === delivery.metadata.id ? found : undefined
  }
  return {
    add: (item) => {
      const name = identify(item.delivery)
      if (name === undefined) return
      const { delivery, brokerAttempts } = item
      // Two copies with one name cannot be distinguished, so neither is settled without a run.
      const isUnsure = memories.get(name)?.isLost === true
      memories.set(name, {
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
      // The next delivery is a new attempt, unless this one was not run.
      const before = {
        name,
        brokerAttempts: isUncounted ? brokerAttempts : brokerAttempts - 1,
        attempts,
        id: metadata.id
      }
      // A retry is not repeated: the next delivery is the retry itself.
      const decided = settlement?._tag === "Retry" ? undecided : decidedOf(item)
      memories.set(name, { ...before, decided, isLost: false })
    },
    isOlder: (delivery) => delivery.attempts < (find(delivery)?.brokerAttempts ?? 0),
    take: (delivery) => {
      const found = find(delivery)
      if (found === undefined) return undefined
      memories.delete(found.name)
      return { delivery: continued(delivery, found), decided: found.decided }
    },
    isEmpty: memories.isEmpty
  }
}
