/** Faults that a test has requested, in their order. */
import type { ErrorName } from "./AwsError.ts"
import type * as Call from "./Call.ts"

/** The calls that a fault affects. */
export interface Where {
  /** The action, or actions, of the calls; a batch such as `DeleteMessageBatch` is a separate action. Default: any. */
  readonly action?: string | ReadonlyArray<string>
  /** The queue, or queues, of the calls. Default: any. */
  readonly queue?: string | ReadonlyArray<string>
  /** The number of calls that fail. Default: 1. */
  readonly times?: number
  /** Every nth of the calls fails. Default: 1. */
  readonly every?: number
}

export type Effect =
  /** The call is not done. */
  | { readonly kind: "refuse"; readonly error: ErrorName }
  /** The first entries of the batch are not done. */
  | { readonly kind: "refuseEntries"; readonly error: ErrorName; readonly entries: number }
  /** The call is done, but its reply never comes, or the connection breaks. */
  | { readonly kind: "lose"; readonly how: "silence" | "reset" }
  /** The call is done, and its reply is replaced by this function. */
  | { readonly kind: "rewrite"; readonly rewrite: (reply: string) => string }
  /** The call is not done, and its reply never comes. */
  | { readonly kind: "ignore" }
  /** The call is done when the promise ends, whether or not the client has waited for it. */
  | { readonly kind: "hold"; readonly until: Promise<void> }

/** A requested fault. */
export interface Fault {
  /** The number of calls that will still fail. */
  readonly left: () => number
  /** Removes the fault. */
  readonly end: () => void
}

const isAmong = (wanted: string | ReadonlyArray<string> | undefined, value: string): boolean =>
  wanted === undefined || [wanted].flat().includes(value)

/** Makes the faults of one proxy. */
export const make = () => {
  const asked: Array<{ readonly where: Where; readonly effect: Effect; seen: number; left: number }> = []
  return {
    add: (where: Where, effect: Effect): Fault => {
      const fault = { where, effect, seen: 0, left: where.times ?? 1 }
      asked.push(fault)
      return { left: () => fault.left, end: () => void asked.splice(asked.indexOf(fault) >>> 0, 1) }
    },
    /** Takes the fault of a call; `undefined` if it has none. */
    take: ({ action, queue }: Call.Call): Effect | undefined => {
      const mine = asked.filter(
        ({ left, where }) => left > 0 && isAmong(where.action, action) && isAmong(where.queue, queue)
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
