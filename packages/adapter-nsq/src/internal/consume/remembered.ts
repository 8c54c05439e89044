/**
 * The memory of this process of messages that may come again.
 *
 * `REQ` carries no metadata, and an nsqd that restarts forgets for how long it was to hold back a message: this process
 * remembers it. `FIN` has no answer: a message that is finished may come again, because nsqd has not read the command, or
 * because it was published to two nsqd.
 */
import { BoundedMap, type Delivery } from "@requeue/core/adapter-kit"
import type { Node } from "../connect/nodes.ts"
import type { Queue } from "../names.ts"
import type { Receipt } from "./receipt.ts"

/** The messages of one topic on one nsqd, where their ids are unique. A copy in another topic may have its original's id. */
interface Messages {
  /** When requeued messages may come again, in milliseconds since the epoch. */
  readonly due: BoundedMap.BoundedMap<number>
  readonly finished: BoundedMap.BoundedMap<true>
}

/** The memory of requeued and of finished messages, by their receipts. It outlives sessions. */
export interface Remembered {
  readonly requeued: (receipt: Receipt, due: number) => void
  /** When a message may come, in milliseconds since the epoch, or `undefined`; it is forgotten with the answer. */
  readonly takeDue: (receipt: Receipt) => number | undefined
  readonly finished: (receipt: Receipt) => void
  readonly isFinished: (receipt: Receipt) => boolean
}

/** How many messages of a topic on an nsqd are remembered at least. */
const limits = { requeued: 100_000, finished: 20_000 }

/** An empty memory. `limit` is how many requeued messages of a topic on an nsqd it keeps at least. */
export const make = (limit = limits.requeued): Remembered => {
  const known = new Map<Queue, Map<Node, Messages>>()

  const messagesOf = ({ session: { node, topic } }: Receipt): Messages => {
    const found = known.get(topic)?.get(node)
    if (found !== undefined) return found
    const made = { due: BoundedMap.make<number>(limit), finished: BoundedMap.make<true>(limits.finished) }
    known.set(topic, (known.get(topic) ?? new Map<Node, Messages>()).set(node, made))
    return made
  }

  return {
    requeued: (receipt, due) => messagesOf(receipt).due.set(receipt.id, due),
    takeDue: (receipt) => {
      const { due } = messagesOf(receipt)
      const at = due.get(receipt.id)
      due.delete(receipt.id)
      return at
    },
    finished: (receipt) => messagesOf(receipt).finished.set(receipt.id, true),
    isFinished: (receipt) => messagesOf(receipt).finished.has(receipt.id)
  }
}

/** The memory of finished messages that were published to two nsqd. */
export interface RememberedCopies {
  /** Remembers a message that is finished, so that its other copy need not run. */
  readonly finished: (delivery: Delivery.Delivery) => void
  readonly isFinished: (delivery: Delivery.Delivery) => boolean
}

/** A text that is the same for both copies of one publish. */
const publishOf = ({ metadata: { firstPublished, id, redrives } }: Delivery.Delivery): string =>
  `${firstPublished} ${redrives} ${id}`

/** An empty memory. */
export const makeCopies = (): RememberedCopies => {
  const finished = BoundedMap.make<true>(limits.finished)
  return {
    finished: (delivery) => finished.set(publishOf(delivery), true),
    isFinished: (delivery) => finished.has(publishOf(delivery))
  }
}
