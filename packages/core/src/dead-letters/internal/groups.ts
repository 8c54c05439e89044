/** Groups dead letters by their cause, one after another. */
import type { Reason } from "../../message/Metadata.ts"
import type { DeadLetter } from "./deadLetter.ts"

/** Dead letters with the same cause. Fields are `undefined` where Requeue did not give the messages up. */
export interface Group {
  /** The queue that they were consumed from. */
  readonly queue: string | undefined
  readonly reason: Reason | undefined
  /** The error's name. */
  readonly error: string | undefined
  /** The error's message, of the newest dead letter. */
  readonly message: string | undefined
  /** The number of dead letters. */
  readonly count: number
  /** When the oldest was given up, in milliseconds since the epoch. */
  readonly oldest: number
  /** When the newest was given up, in milliseconds since the epoch. */
  readonly newest: number
}

/** Groups that are being counted; no letter is kept. */
export interface Groups {
  readonly add: (letter: DeadLetter) => void
  /** The groups so far, most frequent first. */
  readonly all: () => ReadonlyArray<Group>
}

export const make = (): Groups => {
  const groups = new Map<string, Group>()
  return {
    add: ({ firstPublished, origin }) => {
      const key = JSON.stringify([origin?.queue, origin?.reason, origin?.error.name])
      const at = origin?.at ?? firstPublished
      const { count, newest, oldest } = groups.get(key) ?? { count: 0, newest: at, oldest: at }
      groups.set(key, {
        queue: origin?.queue,
        reason: origin?.reason,
        error: origin?.error.name,
        message: origin?.error.message,
        count: count + 1,
        oldest: Math.min(oldest, at),
        newest: Math.max(newest, at)
      })
    },
    all: () => [...groups.values()].toSorted((a, b) => b.count - a.count)
  }
}

/** Groups dead letters by queue of origin, reason and error name, most frequent first. */
export const group = (letters: Iterable<DeadLetter>): ReadonlyArray<Group> => {
  const groups = make()
  for (const letter of letters) groups.add(letter)
  return groups.all()
}
