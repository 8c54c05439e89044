/** The held deliveries of a session: neither settled, nor being settled, nor lost. */
import { TransientMap } from "@requeue/core/port"
import type { Identity } from "../driver.ts"
import type { Receipt } from "./receipt.ts"

/** `take` and `untake` return `false` for a lost delivery, and call `onLost` if it was held. */
export interface Held {
  /** Takes a delivery to settle it; also `false` if it was already settled or taken. */
  readonly take: (receipt: Receipt) => boolean
  /** Holds a taken delivery again; `false` if it was lost in the meantime. */
  readonly untake: (receipt: Receipt) => boolean
  /** Extends a delivery's lease from now on; `false` if it is lost. A lost delivery counts until `take` is called. */
  readonly extend: (receipt: Receipt) => boolean
  /** Holds a new delivery; `false` if it replaces an earlier one of the same message. */
  readonly add: (receipt: Receipt) => boolean
  /** Removes the delivery of a message if this one is later. Returns whether one is held that is later than this. */
  readonly replace: (by: Receipt) => boolean
  /** Ends the lease of a message's delivery; `false` if none is held. */
  readonly lose: (id: string) => boolean
  /** Removes and returns all deliveries without calling `onLost`. */
  readonly clear: () => ReadonlyArray<Receipt>
  readonly size: () => number
}

/**
 * Makes an empty set. `elapsed` returns monotonic milliseconds; `onLost` is called when a delivery no longer counts.
 */
export const make = (env: {
  readonly identity: Pick<Identity, "msgTimeout" | "maxMsgTimeout">
  readonly isOpen: () => boolean
  readonly elapsed: () => number
  readonly onLost: () => void
}): Held => {
  const { elapsed, isOpen, onLost } = env
  const { maxMsgTimeout, msgTimeout } = env.identity
  /** The last delivery of each message, keyed by the message's id. */
  const receipts = TransientMap.make<Receipt>()

  const isLost = ({ leaseEnds }: Receipt): boolean => !isOpen() || elapsed() >= leaseEnds

  const isLast = (receipt: Receipt): boolean => receipts.get(receipt.id) === receipt

  return {
    take: (receipt) => {
      if (!isLast(receipt)) return false
      receipts.delete(receipt.id)
      if (!isLost(receipt)) return true
      onLost()
      return false
    },
    untake: (receipt) => {
      const isStillOurs = !isLost(receipt) && receipts.get(receipt.id) === undefined
      if (isStillOurs) receipts.set(receipt.id, receipt)
      // A later delivery of the message is counted separately.
      else onLost()
      return isStillOurs
    },
    extend: (receipt) => {
      if (!isLast(receipt) || isLost(receipt)) return false
      // nsqd silently limits the extension to its --max-msg-timeout.
      receipt.leaseEnds = Math.min(elapsed() + msgTimeout, receipt.receivedAt + maxMsgTimeout)
      return true
    },
    add: (receipt) => {
      const isNew = receipts.get(receipt.id) === undefined
      receipts.set(receipt.id, receipt)
      return isNew
    },
    replace: (by) => {
      const receipt = receipts.get(by.id)
      if (receipt === undefined || receipt.name !== by.name) return false
      if (receipt.deliveries > by.deliveries) return true
      receipts.delete(by.id)
      onLost()
      return false
    },
    lose: (id) => {
      const receipt = receipts.get(id)
      // It counts until the core knows: until then, its handler is still busy.
      if (receipt !== undefined) receipt.leaseEnds = -Infinity
      return receipt !== undefined
    },
    clear: () => {
      const all = [...receipts.values()]
      for (const { id } of all) receipts.delete(id)
      return all
    },
    size: receipts.size
  }
}
