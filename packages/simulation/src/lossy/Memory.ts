/** The memory of a consumer of messages that may come again though it has settled them: a daemon does not answer to that. */
import type { Receipt } from "./Session.ts"

/** A memory of the messages of one queue. */
export interface Memory {
  /** Names a message: a daemon gives each one of a queue an id, and never the same again. */
  readonly nameOf: (receipt: Receipt) => string
  /** Remembers when a message is due, in milliseconds since the epoch: a daemon that ends in order forgets it. */
  readonly requeued: (receipt: Receipt, due: number) => void
  /** When a message may come; it is forgotten with the answer. */
  readonly takeDue: (receipt: Receipt) => number | undefined
  readonly finished: (receipt: Receipt) => void
  readonly isFinished: (receipt: Receipt) => boolean
}

/** An empty memory. */
export const make = (queue: string): Memory => {
  const due = new Map<string, number>()
  const finished = new Set<string>()
  const nameOf = ({ id, session }: Receipt): string => `${session.server.name} ${queue} ${id}`
  return {
    nameOf,
    requeued: (receipt, at) => due.set(nameOf(receipt), at),
    takeDue: (receipt) => {
      const name = nameOf(receipt)
      const at = due.get(name)
      due.delete(name)
      return at
    },
    finished: (receipt) => finished.add(nameOf(receipt)),
    isFinished: (receipt) => finished.has(nameOf(receipt))
  }
}
