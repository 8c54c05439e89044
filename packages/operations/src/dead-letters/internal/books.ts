/** The books of a sweep: what has become of the letters of a queue. */
import type { BrokerError } from "@requeue/core"
import type { Letter } from "./letter.ts"
import type { Left } from "./silence.ts"

/** A dead letter that could not be moved or removed. */
export interface FailedLetter {
  /** The message's id. */
  readonly id: string
  /** Whether its copy was published: then it is there twice, because the broker did not let it be removed here. */
  readonly isPublished: boolean
  /** The broker's error; `undefined` when no answer came. */
  readonly error: BrokerError.BrokerError | undefined
}

/** The books in figures. */
export interface Summary {
  /** Letters that were selected, and of which no copy was refused. */
  readonly selected: number
  /** Letters that were selected, and that the broker has removed. */
  readonly removed: number
  /** Letters that are done with, and that the broker has not removed. */
  readonly unremoved: number
  /** Letters whose copy the broker refuses. */
  readonly refused: number
  /** Letters for which a publish got no answer, so that one copy more may exist. */
  readonly unconfirmed: number
  /** Letters that were refused or are unremoved, of both the first {@link failuresLimit}. */
  readonly failures: ReadonlyArray<FailedLetter>
  /** Letters that are in the queue, of those that were there at the beginning; `undefined` where nobody counted. */
  readonly queued: number | undefined
  /**
   * Letters that another reader had at the beginning, or has taken since, and that do not count; `undefined` where nobody can
   * tell.
   */
  readonly held: number | undefined
}

/** The books of a sweep that has done nothing. */
export const nothing: Summary = {
  selected: 0,
  removed: 0,
  unremoved: 0,
  refused: 0,
  unconfirmed: 0,
  failures: [],
  queued: undefined,
  held: undefined
}

/** The books, which change while the sweep runs. */
export interface Books {
  /** The letters that are done with and not removed, by the broker's name or by their item. */
  readonly leaving: Map<unknown, Letter>
  readonly unconfirmed: Set<Letter>
  readonly decide: () => void
  /** A letter that has arrived since the work began stays. */
  readonly leave: () => void
  /** Letters that wait, have arrived since the work began, and have not been left. */
  readonly arrived: () => number
  /** No more letters come: of those that were counted, others are with another reader, or gone. */
  readonly end: (left: Left) => void
  readonly select: () => void
  /** The letter with this key in `leaving` has been removed. */
  readonly remove: (key: unknown) => void
  /** Answers whether nothing has been taken at all, after as many refusals as are told. */
  readonly refuse: (letter: Letter, error: BrokerError.BrokerError) => boolean
  /** Letters that are still to be decided on, as far as limit and count tell. */
  readonly wanted: () => number
  readonly summary: () => Summary
}

/** Letters whose failures are told one by one. */
const failuresLimit = 100

/**
 * `ready` letters have been counted, if at all, of which at most `known` were there when the work began, and another reader
 * had `heldBefore`; at most `limit` are selected.
 */
export const make = (
  ready: number | undefined,
  limit: number,
  heldBefore: number | undefined,
  known = Number.POSITIVE_INFINITY
): Books => {
  let held = heldBefore
  // What another reader has may be such letters as were there when the work began.
  let arrived = Math.max(0, Math.min(ready ?? 0, (ready ?? 0) + (held ?? 0) - known))
  let found = ready === undefined ? undefined : ready - arrived
  const leaving = new Map<unknown, Letter>()
  const unconfirmed = new Set<Letter>()
  const refusals: Array<FailedLetter> = []
  let [judged, selected, removed, refused] = [0, 0, 0, 0]
  return {
    leaving,
    unconfirmed,
    decide: () => void judged++,
    leave: () => void arrived--,
    arrived: () => arrived,
    end: (left) => {
      const missing = (found ?? 0) - judged - left.ready
      if (found === undefined || missing <= 0) return
      found -= missing
      held = left.held === undefined ? undefined : Math.min(left.held, missing + (held ?? 0))
    },
    select: () => void selected++,
    remove: (key) => {
      if (leaving.get(key)?.isPassed === false) removed++
      leaving.delete(key)
    },
    refuse: ({ id }, error) => {
      selected--
      if (++refused <= failuresLimit) refusals.push({ id, isPublished: false, error })
      return refused === failuresLimit && removed === 0 && leaving.size === 0
    },
    wanted: () => Math.max(0, Math.min((found ?? Number.POSITIVE_INFINITY) - judged, limit - selected)),
    summary: () => {
      const unremoved = [...leaving.values()].map(({ error, id }): FailedLetter => ({ id, isPublished: true, error }))
      return {
        selected,
        removed,
        unremoved: unremoved.length,
        refused,
        unconfirmed: unconfirmed.size,
        failures: [...refusals, ...unremoved.slice(0, failuresLimit)],
        queued: found === undefined ? undefined : Math.max(found, judged) - removed,
        held
      }
    }
  }
}
