/** Faults that a test has requested of a simulated SQS, in their order. */
import type * as Api from "./Api.ts"
import { type AwsError, type Name, named } from "./AwsError.ts"

/** The calls that a fault concerns. */
export interface Where {
  /** The actions of the calls. Default: any. */
  readonly actions?: ReadonlyArray<string>
  /** The queues of the calls, by their names on SQS. Default: any. */
  readonly queues?: ReadonlyArray<string>
  /** The number of calls that fail. Default: 1. */
  readonly times?: number
  /** Every nth of the calls fails. Default: 1. */
  readonly every?: number
}

/**
 * The effect of a fault on a call:
 *
 * - `refused`: it is not done, and SQS answers with the error.
 * - `refusedEntries`: the entries at these places are not done.
 * - `lostRequest`: it is not done, and no answer comes.
 * - `brokenRequest`: it is not done, and its connection breaks.
 * - `late`: its connection breaks, and it is done `millis` after that.
 * - `lostAnswer`: it is done, and no answer comes.
 * - `brokenAnswer`: it is done, and its connection breaks.
 * - `slow`: its request takes `millis` longer, and its answer `answer`.
 */
export type Effect =
  | { readonly _tag: "refused"; readonly error: Name }
  | { readonly _tag: "refusedEntries"; readonly error: Name; readonly places: ReadonlyArray<number> }
  | { readonly _tag: "lostRequest" | "brokenRequest" | "lostAnswer" | "brokenAnswer" }
  | { readonly _tag: "late"; readonly millis: number }
  | { readonly _tag: "slow"; readonly millis: number; readonly answer?: number }

/** A requested fault. */
export interface Fault {
  /** The number of calls that will still fail. */
  readonly left: () => number
  readonly end: () => void
}

/** The requested faults. */
export interface Faults {
  readonly add: (where: Where, effect: Effect) => Fault
  /** Takes the fault of a call; `undefined` if it has none. */
  readonly take: (call: Api.Call) => Effect | undefined
}

/** Returns the error that an effect gives the entry at a place. */
export const entryError = (effect: Effect | undefined, place: number): AwsError | undefined =>
  effect?._tag === "refusedEntries" && effect.places.includes(place) ? named[effect.error] : undefined

/** Makes no faults. */
export const make = (): Faults => {
  const asked = new Set<{ readonly where: Where; readonly effect: Effect; seen: number; left: number }>()
  return {
    add: (where, effect) => {
      const fault = { where, effect, seen: 0, left: where.times ?? 1 }
      asked.add(fault)
      return { left: () => fault.left, end: () => void asked.delete(fault) }
    },
    take: ({ action, queue }) => {
      for (const fault of asked) {
        const { actions = [action], every = 1, queues = [queue] } = fault.where
        if (fault.left === 0 || !actions.includes(action) || !queues.includes(queue)) continue
        if (++fault.seen % every !== 0) continue
        fault.left--
        return fault.effect
      }
      return undefined
    }
  }
}
