/** Groups dead letters by their cause, one by one. */
import { ErrorPattern, Metadata } from "@requeue/core/port"
import type { DeadLetter } from "./deadLetter.ts"

/** The cause of dead letters. Fields are `undefined` if Requeue did not dead-letter the messages. */
export interface Cause {
  /** The queue that the messages were consumed from. */
  readonly queue: string | undefined
  readonly reason: Metadata.Reason | undefined
  /** The name of the error. */
  readonly error: string | undefined
  /** The part of the error's message that all letters with this cause have in common; see `ErrorPattern`. */
  readonly pattern: string | undefined
}

/** Dead letters with the same cause. */
export interface Group extends Cause {
  /** The error message of the newest dead letter. */
  readonly message: string | undefined
  /** The id of the newest dead letter. */
  readonly id: string
  /** The number of dead letters. It is exact if `missed` is 0, and otherwise a lower bound. */
  readonly count: number
  /**
   * The largest number of dead letters with this cause that may be counted in `other` instead. It is 0 if there are at most
   * 1,000 causes.
   */
  readonly missed: number
  /**
   * When the oldest letter was dead-lettered, in milliseconds since the epoch; `undefined` if the time of every letter is
   * unknown.
   */
  readonly oldest: number | undefined
  /**
   * When the newest letter was dead-lettered, in milliseconds since the epoch; `undefined` if the time of every letter is
   * unknown.
   */
  readonly newest: number | undefined
}

/**
 * Groups of dead letters, the most frequent first. Of equally frequent groups, the one with the newest letter comes first.
 */
export interface Groups extends ReadonlyArray<Group> {
  /**
   * The number of browsed dead letters. Letters that the filter rejected are included here, but are in no group and not in
   * `other`.
   */
  readonly browsed: number
  /** The number of dead letters in the queue when browsing began; `undefined` if the broker cannot count. */
  readonly total: number | undefined
  /**
   * The number of dead letters in no group. There are at most 1,000 groups, and letters of rarer causes are counted here.
   */
  readonly other: number
}

/** Counts groups, and stores no letter. */
export interface Counter {
  /** Counts a letter, and returns its cause. */
  readonly add: (letter: DeadLetter) => Cause
  /** Returns the groups so far. `browsed` is the number of browsed letters, and `total` the number in the queue. */
  readonly all: (browsed: number, total: number | undefined) => Groups
}

/** The largest number of groups. */
export const limit = 1000

/**
 * Returns the cause of a dead letter.
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

/** Makes a {@link causeOf} with a cache, because finding the pattern takes longer than all other work on a letter. */
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
 * It counts by the algorithm Space-Saving. A new cause replaces the rarest one if there is no room. The new cause may have
 * had at most as many letters before as the rarest one. So each cause of more than one in a thousand letters is in the
 * result, wherever its letters are. https://doi.org/10.1007/978-3-540-30570-5_27
 */
export const make = (places = limit): Counter => {
  /** The keys of groups, by the largest number of letters that each group may have; the oldest keys first. */
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
  /** Removes the rarest cause if there is no room, and returns the largest number of letters that it may have had. */
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
