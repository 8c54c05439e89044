/** The deliveries of a session that are held: neither settled, nor taken for settling, nor lost. */
import type { Identity } from "../client.ts"
import type { Receipt } from "./receipt.ts"

/** The first two answer `false` for a delivery that is lost, and call `onLost` if it was held. */
export interface Held {
  /** Takes a delivery for settling; `false` also when it has been settled or taken before. */
  readonly take: (receipt: Receipt) => boolean
  /** Holds a delivery again that was taken; `false` when it was lost meanwhile. */
  readonly untake: (receipt: Receipt) => boolean
  /** Extends the lease of a delivery from now on; `false` when it is lost, and then it counts until `take` is called. */
  readonly extend: (receipt: Receipt) => boolean
  /** Holds a delivery that has arrived; `false` when it takes the place of an earlier one of the same message. */
  readonly add: (receipt: Receipt) => boolean
  /** Ends the lease of a message's delivery; `false` when there is none. */
  readonly lose: (id: string) => boolean
  /** Loses all without a word, and answers their ids. */
  readonly clear: () => ReadonlyArray<string>
  readonly size: () => number
}

/** Holds nothing yet. `elapsed` answers monotonic milliseconds; `onLost` is called when a delivery counts no more. */
export const make = (env: {
  readonly identity: Pick<Identity, "msgTimeout" | "maxMsgTimeout">
  readonly isOpen: () => boolean
  readonly elapsed: () => number
  readonly onLost: () => void
}): Held => {
  const { elapsed, isOpen, onLost } = env
  const { maxMsgTimeout, msgTimeout } = env.identity
  /** By the ids of their messages: of each message, the last delivery. */
  const receipts = new Map<string, Receipt>()

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
      const isStillOurs = !isLost(receipt) && !receipts.has(receipt.id)
      if (isStillOurs) receipts.set(receipt.id, receipt)
      // A later delivery of the message counts for itself.
      else onLost()
      return isStillOurs
    },
    extend: (receipt) => {
      if (!isLast(receipt) || isLost(receipt)) return false
      // nsqd extends no lease beyond its limit, and says nothing of that.
      receipt.leaseEnds = Math.min(elapsed() + msgTimeout, receipt.receivedAt + maxMsgTimeout)
      return true
    },
    add: (receipt) => {
      const isNew = !receipts.has(receipt.id)
      receipts.set(receipt.id, receipt)
      return isNew
    },
    lose: (id) => {
      const receipt = receipts.get(id)
      // It counts until the core is told: until then, its handler has no room for another one.
      if (receipt !== undefined) receipt.leaseEnds = -Infinity
      return receipt !== undefined
    },
    clear: () => {
      const ids = [...receipts.keys()]
      receipts.clear()
      return ids
    },
    size: () => receipts.size
  }
}
