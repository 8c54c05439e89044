/**
 * The memory of this process of messages that may come again.
 *
 * `REQ` carries no metadata, and an nsqd that restarts forgets for how long it was to hold back a message: this process
 * remembers it. `FIN` has no answer: a message that is finished may come again, because nsqd has not read the command, or
 * because it was stored on two nsqd. The core was told that it is settled, so that it cannot know this; and where a copy
 * was stored first, to repeat the settlement would store another one.
 */
import { BoundedMap } from "@requeue/core/port"
import { isSame, type Node } from "../connect/nodes.ts"
import type { Queue } from "../names.ts"
import type { Receipt } from "./receipt.ts"

/** The messages of one topic on one nsqd, where their ids are unique. A copy in another topic may have its original's id. */
interface Messages {
  /** When requeued messages may come again, in monotonic milliseconds. */
  readonly due: BoundedMap.BoundedMap<number>
  readonly finished: BoundedMap.BoundedMap<true>
}

/** Where a message comes from, and its id there. */
type Source = Pick<Receipt, "id" | "session">

/** The memory of requeued and of finished messages. It outlives sessions. */
export interface Remembered {
  readonly requeued: (source: Source, due: number) => void
  /** When a message may come, in monotonic milliseconds, or `undefined`; it is forgotten with the answer. */
  readonly takeDue: (source: Source) => number | undefined
  readonly finished: (source: Source) => void
  readonly isFinished: (source: Source) => boolean
}

/** How many messages of a topic on an nsqd are remembered at least. */
const limits = { requeued: 100_000, finished: 20_000 }

/** An empty memory. `limit` is how many requeued messages of a topic on an nsqd it keeps at least. */
export const make = (limit = limits.requeued): Remembered => {
  const known = new Map<Queue, Map<Node, Messages>>()

  const messagesOf = ({ session: { node, topic } }: Source): Messages => {
    const found = known.get(topic)?.get(node)
    if (found !== undefined) return found
    const made = { due: BoundedMap.make<number>(limit), finished: BoundedMap.make<true>(limits.finished) }
    known.set(topic, (known.get(topic) ?? new Map<Node, Messages>()).set(node, made))
    return made
  }

  return {
    requeued: (source, due) => messagesOf(source).due.set(source.id, due),
    takeDue: (source) => {
      const { due } = messagesOf(source)
      if (due.isEmpty()) return undefined
      const at = due.get(source.id)
      due.delete(source.id)
      return at
    },
    finished: (source) => messagesOf(source).finished.set(source.id, true),
    isFinished: (source) => messagesOf(source).finished.has(source.id)
  }
}

/** The memory of messages that were stored on two nsqd, and of which one is finished, by their receipts. */
export interface FinishedDuplicates {
  /** Remembers a message that is finished for good, so that its twin need not run. */
  readonly finished: (receipt: Receipt) => void
  /** Whether the twin of this message is finished. It has only one: the answer is yes once. */
  readonly takeFinished: (receipt: Receipt) => boolean
}

/**
 * An empty memory. Twins have the same nonce and are on different nsqd: bytes that somebody has published once more on the
 * same nsqd, or after both twins have come, are another message.
 */
export const makeDuplicates = (): FinishedDuplicates => {
  const finished = BoundedMap.make<Node>(limits.finished)
  /** Those that need not run: they are finished for their twins, and not for a further one. */
  const taken = new WeakSet<Receipt>()

  /** Whether the other one of a pair is finished. */
  const isSecond = ({ nonce, session }: Receipt): boolean => {
    const node = nonce === undefined ? undefined : finished.get(nonce)
    return node !== undefined && !isSame(node, session.node)
  }

  return {
    finished: (receipt) => {
      const { nonce, session } = receipt
      if (nonce === undefined || taken.has(receipt)) return
      if (isSecond(receipt)) finished.delete(nonce)
      else finished.set(nonce, session.node)
    },
    takeFinished: (receipt) => {
      if (!isSecond(receipt)) return false
      finished.delete(receipt.nonce!)
      taken.add(receipt)
      return true
    }
  }
}
