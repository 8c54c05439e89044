/** Groups dead letters by their cause, one by one. */
import { ErrorPattern, Metadata } from "@requeue/core/port"
import type { DeadLetter } from "./deadLetter.ts"

/** The cause of dead letters. Fields are `undefined` if Requeue did not dead-letter the messages. */
export interface Cause {
  /** The queue that they were consumed from. */
  readonly queue: string | undefined
  readonly reason: Metadata.Reason | undefined
  /** The error's name. */
  readonly error: string | undefined
  /** The part of the error's message that all of them have; see `ErrorPattern`. */
  readonly pattern: string | undefined
}

/** Dead letters with the same cause. */
export interface Group extends Cause {
  /** The error's message, of the newest dead letter. */
  readonly message: string | undefined
  /** The id of the newest dead letter. */
  readonly id: string
  /** The number of dead letters: exact if `missed` is 0, else a lower bound. */
  readonly count: number
  /**
   * The most dead letters of this cause that may be in `other`, because it replaced a rarer cause. 0 while
   * there are at most 1,000 causes.
   */
  readonly missed: number
  /** When the oldest was dead-lettered, in milliseconds since the epoch; `undefined` if unknown for all. */
  readonly oldest: number | undefined
  /** When the newest was dead-lettered, in milliseconds since the epoch; `undefined` if unknown for all. */
  readonly newest: number | undefined
}

/** Groups of dead letters: the most frequent first, of equal ones the newest. */
export interface Groups extends ReadonlyArray<Group> {
  /** Browsed dead letters. The filter rejected those that are in no group and not in `other`. */
  readonly browsed: number
  /** Dead letters in the queue when browsing began; `undefined` if the broker cannot count. */
  readonly total: number | undefined
  /** Dead letters in no group: those of causes that others replaced among the 1,000. */
  readonly other: number
}

/** Counts groups, and stores no letter. */
export interface Counter {
  /** Counts a letter, and returns its cause. */
  readonly add: (letter: DeadLetter) => Cause
  /** Returns the groups so far. `browsed` and `total` are the numbers of browsed letters, and of all. */
  readonly all: (browsed: number, total: number | undefined) => Groups
}

/** The most groups. */
export const limit = 1000

/**
 * The cause of a dead letter.
 *
 * When to use: to select the letters of a group.
 */
export const causeOf = ({ origin }: Pick<DeadLetter, "origin">): Cause => {
  const error = origin && Metadata.truncateError(origin.error)
  return {
    queue: origin?.queue,
    reason: origin?.reason,
    error: error?.name,
    pattern: error && ErrorPattern.of(error.message)
  }
}

/** Errors whose causes are remembered: in an outage, most letters have the same few. */
const remembered = 1000

/** {@link causeOf} with a cache: finding the pattern takes longer than all other work on a letter. */
const remembering = (): typeof causeOf => {
  const causes = new Map<string, Cause>()
  return ({ origin }) => {
    const key = JSON.stringify([origin?.queue, origin?.reason, origin?.error])
    const known = causes.get(key)
    if (known !== undefined) return known
    if (causes.size >= remembered) causes.clear()
    const cause = causeOf({ origin })
    causes.set(key, cause)
    return cause
  }
}

/** The extreme of the known times. */
const extreme = (of: (...times: ReadonlyArray<number>) => number, one: number | undefined, other: number | undefined) =>
  one === undefined || other === undefined ? (one ?? other) : of(one, other)

/**
 * Makes an empty counter, for letters that `read` returns page by page.
 *
 * It counts by the algorithm Space-Saving: if there is no room for a new cause, it replaces the rarest, whose count is
 * the most that the new one may have had before. So each cause of more than one in a thousand letters is in the result,
 * wherever its letters are. https://doi.org/10.1007/978-3-540-30570-5_27
 */
export const make = (places = limit): Counter => {
  /** The keys of groups by the most letters that they may have, the oldest keys first. */
  const ranks = new Map<number, Map<string, Group>>()
  const rankOf = new Map<string, number>()
  const find = remembering()
  let lowest = 1
  let other = 0

  const put = (rank: number, key: string, group: Group): void => {
    const rest = ranks.get(rank) ?? new Map<string, Group>()
    ranks.set(rank, rest.set(key, group))
    rankOf.set(key, rank)
  }
  const take = (rank: number, key: string): Group | undefined => {
    const rest = ranks.get(rank)
    const group = rest?.get(key)
    rest?.delete(key)
    if (rest?.size === 0) ranks.delete(rank)
    rankOf.delete(key)
    return group
  }
  /** Removes the rarest cause if there is no room, and returns the most letters that it may have had. */
  const evict = (): number => {
    if (rankOf.size < places) return 0
    // Without free room, groups only move up.
    while (!ranks.has(lowest)) lowest++
    const [key] = ranks.get(lowest)!.keys()
    other += take(lowest, key!)!.count
    return lowest
  }

  return {
    add: (letter) => {
      const { id, metadata, origin } = letter
      const cause = find(letter)
      const key = JSON.stringify([cause.queue, cause.reason, cause.error, cause.pattern])
      const rank = rankOf.get(key)
      const known = rank === undefined ? undefined : take(rank, key)
      const missed = known?.missed ?? evict()
      const at = origin?.at ?? Metadata.publishedAt(metadata)
      const { count = 0, newest, oldest } = known ?? {}
      const isNewest = known === undefined || (at ?? 0) >= (newest ?? 0)
      const message = origin && Metadata.truncateError(origin.error).message
      const example = isNewest ? { message, id } : known
      put((rank ?? missed) + 1, key, {
        ...cause,
        message: example.message,
        id: example.id,
        count: count + 1,
        missed,
        oldest: extreme(Math.min, oldest, at),
        newest: extreme(Math.max, newest, at)
      })
      return cause
    },
    all: (browsed, total) => {
      const sorted = [...ranks.values()]
        .flatMap((groups) => [...groups])
        .toSorted(
          ([keyA, a], [keyB, b]) => b.count - a.count || (b.newest ?? 0) - (a.newest ?? 0) || (keyA < keyB ? -1 : 1)
        )
      return Object.assign(
        sorted.map(([, group]) => group),
        { browsed, total, other }
      )
    }
  }
}

/** Groups dead letters by queue of origin, reason, error name and error pattern, most frequent first. */
export const group = (letters: Iterable<DeadLetter>): Groups => {
  const counter = make()
  let browsed = 0
  for (const letter of letters) {
    browsed++
    counter.add(letter)
  }
  return counter.all(browsed, browsed)
}
