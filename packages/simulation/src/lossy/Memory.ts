/** Remembers settled messages of a consumer that may be redelivered: a daemon does not confirm settlements. */
import type { Receipt } from "./Session.ts"

/** A memory of the messages of one queue. */
export interface Memory {
  /** Names a message: a daemon gives each message of a queue a unique id. */
  readonly nameOf: (receipt: Receipt) => string
  /** Remembers when a message is due, in milliseconds since the epoch: a daemon that shuts down in order forgets it. */
  readonly requeued: (receipt: Receipt, due: number) => void
  /** Returns when a message is due, and forgets it. */
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
