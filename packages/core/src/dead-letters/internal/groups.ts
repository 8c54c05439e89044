/** Groups dead letters by their cause, one after another. */
import * as Metadata from "../../message/Metadata.ts"
import * as ErrorPattern from "../ErrorPattern.ts"
import type { DeadLetter } from "./deadLetter.ts"

/** Dead letters with the same cause. Fields are `undefined` where Requeue did not give the messages up. */
export interface Group {
  /** The queue that they were consumed from. */
  readonly queue: string | undefined
  readonly reason: Metadata.Reason | undefined
  /** The error's name. */
  readonly error: string | undefined
  /** The part of the error's message that all of them have; see `ErrorPattern`. */
  readonly pattern: string | undefined
  /** The error's message, of the newest dead letter. */
  readonly message: string | undefined
  /** The id of the newest dead letter. */
  readonly id: string
  /** The number of dead letters. */
  readonly count: number
  /** When the oldest was given up, in milliseconds since the epoch; `undefined` where nobody knows that of any. */
  readonly oldest: number | undefined
  /** When the newest was given up, in milliseconds since the epoch; `undefined` where nobody knows that of any. */
  readonly newest: number | undefined
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
  readonly add: (letter: DeadLetter) => void
  /** The groups so far, of so many letters that were looked at, of so many that there are. */
  readonly all: (looked: number, total: number | undefined) => Groups
}

/** The most groups that are told apart. */
export const limit = 1000

/** Of the times that are known. */
const extreme = (of: (...times: ReadonlyArray<number>) => number, one: number | undefined, other: number | undefined) =>
  one === undefined || other === undefined ? (one ?? other) : of(one, other)

export const make = (): Counter => {
  const groups = new Map<string, Group>()
  let other = 0
  return {
    add: ({ id, metadata, origin }) => {
      const error = origin && Metadata.cutError(origin.error)
      const pattern = error && ErrorPattern.of(error.message)
      const key = JSON.stringify([origin?.queue, origin?.reason, error?.name, pattern])
      const known = groups.get(key)
      if (known === undefined && groups.size >= limit) return void other++
      const at = origin?.at ?? Metadata.publishedAt(metadata)
      const { count = 0, newest, oldest } = known ?? {}
      const isNewest = known === undefined || (at ?? 0) >= (newest ?? 0)
      const example = isNewest ? { message: error?.message, id } : known
      groups.set(key, {
        queue: origin?.queue,
        reason: origin?.reason,
        error: error?.name,
        pattern,
        message: example.message,
        id: example.id,
        count: count + 1,
        oldest: extreme(Math.min, oldest, at),
        newest: extreme(Math.max, newest, at)
      })
    },
    all: (looked, total) => {
      const sorted = [...groups].toSorted(
        ([keyA, a], [keyB, b]) => b.count - a.count || (b.newest ?? 0) - (a.newest ?? 0) || (keyA < keyB ? -1 : 1)
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
