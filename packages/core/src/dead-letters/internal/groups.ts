/** Groups dead letters by their cause, one after another. */
import * as Metadata from "../../message/Metadata.ts"
import * as ErrorPattern from "../ErrorPattern.ts"
import type { DeadLetter } from "./deadLetter.ts"

/** The cause of dead letters. Fields are `undefined` where Requeue did not give the messages up. */
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
  /** The number of dead letters. */
  readonly count: number
  /** When the oldest was given up, in milliseconds since the epoch. */
  readonly oldest: number
  /** When the newest was given up, in milliseconds since the epoch. */
  readonly newest: number
}

/** Groups of dead letters: the most frequent first, of equal ones the newest. */
export interface Groups extends ReadonlyArray<Group> {
  /** Dead letters that were looked at; a filter has rejected those that are in no group and not in `other`. */
  readonly looked: number
  /** Dead letters that waited when the look began; `undefined` where the broker cannot count. */
  readonly total: number | undefined
  /** Dead letters of further causes, once 1,000 were found. */
  readonly other: number
}

/** Groups that are being counted; no letter is kept. */
export interface Counter {
  /** Counts a letter, and answers its cause. */
  readonly add: (letter: DeadLetter) => Cause
  /** The groups so far, of so many letters that were looked at, of so many that there are. */
  readonly all: (looked: number, total: number | undefined) => Groups
}

/** The most groups that are told apart. */
export const limit = 1000

/**
 * The cause of a dead letter. The filter of a redrive gets deliveries: of these, `metadata.deadLetter` is the `origin`.
 *
 * When to use: to select the letters of a group that was shown.
 */
export const causeOf = ({ origin }: Pick<DeadLetter, "origin">): Cause => {
  const error = origin && Metadata.cutError(origin.error)
  return {
    queue: origin?.queue,
    reason: origin?.reason,
    error: error?.name,
    pattern: error && ErrorPattern.of(error.message)
  }
}

/** Errors whose causes are remembered: in an outage, most letters have the same few. */
const remembered = 1000

/** {@link causeOf}, which remembers: to find a pattern takes longer than all else that is done with a letter. */
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

/** A counter that has counted nothing: for letters that `read` brings, page by page. */
export const make = (): Counter => {
  const groups = new Map<string, Group>()
  const find = remembering()
  let other = 0
  return {
    add: (letter) => {
      const { firstPublished, id, origin } = letter
      const cause = find(letter)
      const key = JSON.stringify([cause.queue, cause.reason, cause.error, cause.pattern])
      const known = groups.get(key)
      if (known === undefined && groups.size >= limit) {
        other++
        return cause
      }
      const at = origin?.at ?? firstPublished
      const { count, newest, oldest } = known ?? { count: 0, newest: at, oldest: at }
      const message = origin && Metadata.cutError(origin.error).message
      const example = known === undefined || at >= newest ? { message, id } : known
      groups.set(key, {
        ...cause,
        message: example.message,
        id: example.id,
        count: count + 1,
        oldest: Math.min(oldest, at),
        newest: Math.max(newest, at)
      })
      return cause
    },
    all: (looked, total) => {
      const sorted = [...groups].toSorted(
        ([keyA, a], [keyB, b]) => b.count - a.count || b.newest - a.newest || (keyA < keyB ? -1 : 1)
      )
      return Object.assign(
        sorted.map(([, group]) => group),
        { looked, total, other }
      )
    }
  }
}

/** Groups dead letters by queue of origin, reason, error name and error pattern, most frequent first. */
export const group = (letters: Iterable<DeadLetter>): Groups => {
  const counter = make()
  let looked = 0
  for (const letter of letters) {
    looked++
    counter.add(letter)
  }
  return counter.all(looked, looked)
}
