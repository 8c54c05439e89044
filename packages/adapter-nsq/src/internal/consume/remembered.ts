/**
 * Messages that may be redelivered, as this process remembers them.
 *
 * `REQ` carries no metadata, and a restarted nsqd forgets how long it had to defer a message: this process remembers
 * it. `FIN` has no answer: a finished message may be redelivered, because nsqd did not read the command, or because the
 * message was stored on two nsqd. The core already knows the message as settled. Settling it again could store a second
 * copy.
 */
import { BoundedMap } from "@requeue/core/port"
import { isSame, type Node } from "../connect/nodes.ts"
import type { Receipt } from "./receipt.ts"

/** The messages that arrived at one address of an nsqd, by their names. */
interface Messages {
  /** When requeued messages are due, in monotonic milliseconds. */
  readonly due: BoundedMap.BoundedMap<number>
  readonly finished: BoundedMap.BoundedMap<true>
}

/** A message's session and name. */
type Source = Pick<Receipt, "name" | "session">

/** The memory of requeued and of finished messages. It outlives sessions. An nsqd may have several addresses. */
export interface Remembered {
  readonly requeued: (source: Source, due: number) => void
  /** Removes and returns when a message is due, in monotonic milliseconds, or `undefined`. */
  readonly takeDue: (name: string) => number | undefined
  readonly finished: (source: Source) => void
  readonly isFinished: (name: string) => boolean
}

/** Minimum number of messages remembered for one nsqd. */
const limits = { requeued: 100_000, finished: 20_000 }

/** Makes an empty memory. `limit` is the minimum number of requeued messages kept for one nsqd. */
export const make = (limit = limits.requeued): Remembered => {
  const known = new Map<Node, Messages>()

  const at = ({ node }: Receipt["session"]): Messages => {
    const found = known.get(node)
    if (found !== undefined) return found
    const made = { due: BoundedMap.make<number>(limit), finished: BoundedMap.make<true>(limits.finished) }
    known.set(node, made)
    return made
  }

  /** Returns the messages among which a message is. */
  const find = (name: string, part: keyof Messages): Messages | undefined => {
    for (const messages of known.values()) if (messages[part].has(name)) return messages
    return undefined
  }

  return {
    requeued: ({ name, session }, due) => at(session).due.set(name, due),
    takeDue: (name) => {
      const due = find(name, "due")?.due
      const at = due?.get(name)
      due?.delete(name)
      return at
    },
    finished: ({ name, session }) => at(session).finished.set(name, true),
    isFinished: (name) => find(name, "finished") !== undefined
  }
}

/** Messages that were stored on two nsqd, and of which one copy is finished. */
export interface FinishedDuplicates {
  /** Remembers that a message is finished: its duplicate need not run. */
  readonly finished: (receipt: Receipt) => void
  /** Whether the duplicate of this message is finished. Returns `true` once, since there is only one duplicate. */
  readonly takeFinished: (receipt: Receipt) => boolean
}

/**
 * Makes an empty memory. Duplicates have the same nonce and are on different nsqd. The same bytes, published again on
 * the same nsqd or after both duplicates have arrived, are another message.
 */
export const makeDuplicates = (): FinishedDuplicates => {
  const finished = BoundedMap.make<Node>(limits.finished)
  /** Receipts that need not run, because their duplicates are finished. */
  const taken = new WeakSet<Receipt>()

  /** Whether the duplicate of this message is finished. */
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
