/**
 * The memory of copies that were lost with their connection or lease: which settlement was asked for them, and how many
 * attempts they had. When the broker delivers such a copy again, the settlement is repeated, and no handler
 * sees it; a delivery that no handler had begun has cost no attempt.
 */
import * as BoundedMap from "../../adapter-kit/BoundedMap.ts"
import type { Delivery } from "../../message/Delivery.ts"
import * as Settlement from "../../message/Settlement.ts"
import type { Item } from "./item.ts"

/** The delivery with the attempts that it really has, and its settlement if that was decided already. */
export interface Known {
  readonly delivery: Delivery
  readonly settlement: Settlement.Settlement | undefined
  /** How often it was lost. */
  readonly losses: number
}

export interface Remembered {
  /** Remembers an item that is lost. `left` are the milliseconds of its delay, `now` is in milliseconds since the epoch. */
  readonly add: (item: Item, left: number, now: number) => void
  /** Remembers of an item that goes back how many attempts the broker has counted too many. */
  readonly note: (item: Item) => void
  /** Whether a delivery was handed out before the one that is remembered of its copy, and only came after it. */
  readonly isOlder: (delivery: Delivery) => boolean
  /** Takes out of the memory what is known of a redelivery; `undefined` when nothing is. */
  readonly take: (delivery: Delivery, now: number) => Known | undefined
  readonly isEmpty: () => boolean
}

interface Memory {
  readonly name: string
  readonly told: number
  readonly attempts: number
  readonly settlement: Settlement.Settlement | undefined
  /** When its retry is due, in milliseconds since the epoch. */
  readonly due: number
  readonly losses: number
  readonly id: string
  /** Whether a delivery was lost; else only its attempts are remembered. */
  readonly isLost: boolean
}

/** Number of copies that are remembered at least; the oldest are forgotten first. */
const limit = 10_000

/**
 * The delivery with the attempts that its predecessor had: that came to no end, so that this is the same attempt. Where
 * others were delivered in between, these count.
 */
export const continued = (delivery: Delivery, before: Pick<Memory, "told" | "attempts">): Delivery => {
  const attempts = before.attempts + Math.max(0, delivery.attempts - before.told - 1)
  return attempts === delivery.attempts ? delivery : { ...delivery, attempts }
}

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
    add: (item, left, now) => {
      const name = identify(item.delivery)
      if (name === undefined) return
      const { delivery, losses, settlement, told } = item
      // Two copies of one name cannot be told apart, so that neither is settled without a run.
      const isUnsure = known.get(name)?.isLost === true
      known.set(name, {
        name,
        told,
        attempts: delivery.attempts,
        settlement: isUnsure || settlement?._tag === "Release" ? undefined : settlement,
        due: now + left,
        losses,
        id: delivery.metadata.id,
        isLost: true
      })
    },
    note: ({ delivery, isUncounted, told }) => {
      const name = identify(delivery)
      const { attempts, metadata } = delivery
      if (name === undefined) return
      // Unlike one that is lost or was not run, the next delivery is another attempt, unless the broker does not count this
      // one.
      const before = { name, told: isUncounted ? told : told - 1, attempts, id: metadata.id }
      known.set(name, { ...before, settlement: undefined, due: 0, losses: 0, isLost: false })
    },
    isOlder: (delivery) => delivery.attempts < (find(delivery)?.told ?? 0),
    take: (delivery, now) => {
      const found = find(delivery)
      if (found === undefined) return undefined
      known.delete(found.name)
      const { due, losses, settlement } = found
      return {
        delivery: continued(delivery, found),
        settlement: settlement && remaining(settlement, due - now),
        losses
      }
    },
    isEmpty: known.isEmpty
  }
}
