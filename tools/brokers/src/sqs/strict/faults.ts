/** What goes wrong on purpose, in the order in which it was asked for. */
import type { ErrorName } from "./AwsError.ts"
import type * as Call from "./Call.ts"

export interface Where {
  /** Of any call, if it is not said. A batch is an action of its own: `DeleteMessageBatch`. */
  readonly action?: string
  /** Of any queue, if it is not said. */
  readonly queue?: string
  /** Calls that it happens to. Default: 1. */
  readonly times?: number
  /** It happens to every nth of these calls. Default: 1. */
  readonly every?: number
}

export type Effect =
  /** The call is not done. */
  | { readonly kind: "refuse"; readonly error: ErrorName }
  /** The first entries of the batch are not done. */
  | { readonly kind: "refuseEntries"; readonly error: ErrorName; readonly entries: number }
  /** The call is done; the answer never comes, or the connection breaks. */
  | { readonly kind: "lose"; readonly how: "silence" | "reset" }

/** A fault that was asked for. */
export interface Fault {
  /** Calls that it is still to happen to. */
  readonly left: () => number
}

/** Those of one proxy. */
export const make = () => {
  const asked: Array<{ readonly where: Where; readonly effect: Effect; seen: number; left: number }> = []
  return {
    add: (where: Where, effect: Effect): Fault => {
      const fault = { where, effect, seen: 0, left: where.times ?? 1 }
      asked.push(fault)
      return { left: () => fault.left }
    },
    /** What happens to this call. */
    take: ({ action, queue }: Call.Call): Effect | undefined => {
      const mine = asked.filter(
        ({ left, where }) => left > 0 && (where.action ?? action) === action && (where.queue ?? queue) === queue
      )
      for (const fault of mine) fault.seen++
      const due = mine.find(({ seen, where: { every = 1 } }) => seen % every === 0)
      if (due === undefined) return undefined
      due.left--
      return due.effect
    },
    clear: () => void asked.splice(0)
  }
}
