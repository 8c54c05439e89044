/**
 * The state of a consumer's rate limit, as a pure machine. The state has the times at which the last runs began. The
 * current time is an argument, in monotonic milliseconds.
 */
import type { RateLimit } from "./RateLimit.ts"

/** A run, and its neighbours in the list. */
interface Run {
  readonly at: number
  readonly rest: Run | undefined
}

/** The runs that began within the window, oldest first, as two linked lists: append and remove take constant time. */
export interface State {
  /** The number of runs in both lists. */
  readonly count: number
  /** The older runs, oldest first; `undefined` only if `count` is 0. */
  readonly first: Run | undefined
  /** The newer runs, newest first. */
  readonly last: Run | undefined
}

/** The state of a consumer that starts. */
export const initial: State = { count: 0, first: undefined, last: undefined }

/** Returns the state after a run began at `now`, in monotonic milliseconds. `now` must not decrease between calls. */
export const begin = ({ count, first, last }: State, now: number): State =>
  first === undefined
    ? { count: 1, first: { at: now, rest: undefined }, last: undefined }
    : { count: count + 1, first, last: { at: now, rest: last } }

const reversed = (run: Run | undefined): Run | undefined => {
  let result: Run | undefined
  for (let each = run; each !== undefined; each = each.rest) result = { at: each.at, rest: result }
  return result
}

/**
 * Forgets the runs that began before the window that ends at this time. Returns the same state if there are no such
 * runs.
 */
export const at = ({ per }: RateLimit, state: State, now: number): State => {
  let { count, first, last } = state
  while (first !== undefined && first.at + per <= now) {
    count--
    first = first.rest
    if (first !== undefined) continue
    first = reversed(last)
    last = undefined
  }
  return count === state.count ? state : { count, first, last }
}

/** The runs that a limit allows. */
export interface Decision {
  /** How many runs may begin now. */
  readonly room: number
  /** Milliseconds until one more run may begin; `Infinity` if `room` is `max`. */
  readonly wait: number
}

/** Decides what the limit allows at this time. */
export const decide = (limit: RateLimit, state: State, now: number): Decision => {
  const { count, first } = at(limit, state, now)
  return { room: limit.max - count, wait: first === undefined ? Number.POSITIVE_INFINITY : first.at + limit.per - now }
}
