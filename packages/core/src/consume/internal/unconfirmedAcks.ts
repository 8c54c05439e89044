/**
 * Messages that this process has acked while the broker may not know it. When the broker delivers one of them again, it
 * is acked again, and no handler sees it.
 */
import * as BoundedMap from "../../adapter-kit/BoundedMap.ts"
import type { Delivery } from "../../message/Delivery.ts"
import type { Settlement } from "../../message/Settlement.ts"

export interface UnconfirmedAcks {
  /** Remembers the message if the settlement is an ack. */
  readonly remember: (delivery: Delivery, settlement: Settlement) => void
  /** Forgets the message if the settlement is an ack: the broker knows it. */
  readonly confirm: (delivery: Delivery, settlement: Settlement) => void
  readonly has: (delivery: Delivery) => boolean
  readonly isEmpty: () => boolean
}

/** Number of messages that are remembered at least; the oldest are forgotten first. */
const limit = 10_000

/** The same for every delivery of one publish: a producer that uses an id again publishes another message. */
const publishOf = ({ metadata: { firstPublished, id } }: Delivery): string => `${firstPublished} ${id}`

export const make = (): UnconfirmedAcks => {
  const acked = BoundedMap.make<true>(limit)
  return {
    remember: (delivery, settlement) => {
      if (settlement._tag === "Ack") acked.set(publishOf(delivery), true)
    },
    confirm: (delivery, settlement) => {
      if (settlement._tag === "Ack" && !acked.isEmpty()) acked.delete(publishOf(delivery))
    },
    has: (delivery) => !acked.isEmpty() && acked.has(publishOf(delivery)),
    isEmpty: acked.isEmpty
  }
}
