/** Letters that an operator means: those of a filter, of a cause, one, or all. */
import { ErrorPattern } from "@requeue/core/port"
import { DeadLetters, LetterFilter } from "@requeue/operations"
import { mark, type Redact } from "../../Redaction.ts"
import type { Place } from "../paths.ts"
import * as CauseId from "./causeId.ts"
import * as Letters from "./letters.ts"

/** The letters of a job, as they were meant when it was asked for. */
export interface Selection {
  /** The id of the cause; `undefined` for those of all causes. */
  readonly cause: string | undefined
  /** The key of the letter; `undefined` for all of the cause. */
  readonly letter: string | undefined
  /** The filter as fields of an address; empty without one. */
  readonly search: Pick<Place, "filter">
  /** The filter, for the audit; `undefined` without one. */
  readonly filter: LetterFilter.LetterFilter | undefined
  /** The letters in words. */
  readonly title: string
  /** Whether a letter is meant; `undefined` where all are. */
  readonly isMeant: ((letter: DeadLetters.DeadLetter) => boolean) | undefined
}

/** Letters in words: of a cause, one with an id, those of a filter, or all. */
export const titleOf = ({
  cause,
  filter,
  id
}: {
  readonly cause: string | undefined
  readonly id: string | undefined
  readonly filter: LetterFilter.LetterFilter | undefined
}): string => {
  if (id !== undefined) return `the letter ${id}`
  const words = filter === undefined ? "" : LetterFilter.describe(filter).join(", ")
  return [cause ?? (words === "" ? "all letters" : "letters"), ...(words === "" ? [] : [`only ${words}`])].join(", ")
}

/** Whether both mean the same letters, but for the time to which ages are told. */
export const isSame = (one: Selection, other: Selection): boolean =>
  JSON.stringify([one.cause, one.letter, one.search]) === JSON.stringify([other.cause, other.letter, other.search])

/** A letter whose error has its pattern for a message: messages may quote bodies, which not everybody may see. */
const patterned = (letter: LetterFilter.Subject): LetterFilter.Subject => {
  const { origin } = letter
  if (origin === undefined) return letter
  const error = { name: origin.error.name, message: ErrorPattern.of(origin.error.message) }
  return { ...letter, origin: { ...origin, error } }
}

/** A letter as people may see it, as far as the filter looks at it. */
const shown = (
  { error, header, id }: LetterFilter.LetterFilter,
  letter: LetterFilter.Subject,
  redact: Redact,
  place: Place
): LetterFilter.Subject => {
  const { origin } = letter
  if (error === undefined && header === undefined && id === undefined) return letter
  const content = redact({ headers: letter.headers, id: letter.id, error: origin?.error }, place)
  return {
    ...letter,
    id: content.id ?? mark,
    headers: content.headers,
    origin: origin && { ...origin, error: content.error ?? { name: mark, message: mark } }
  }
}

/**
 * Whether letters pass a filter, as they are and as people may see them: so that nobody finds out by filters what the hook
 * hides. One that the hook cannot handle does not pass. `now` is in milliseconds since the epoch.
 */
export const filtering = (filter: LetterFilter.LetterFilter, now: number, redact: Redact, place: Place) => {
  const passes = LetterFilter.matches(filter, now)
  return (letter: LetterFilter.Subject): boolean => {
    const told = filter.error === undefined ? (each: LetterFilter.Subject) => each : patterned
    if (!passes(told(letter))) return false
    try {
      // The pattern comes last: the hook finds no secret of which a part has become a placeholder.
      return passes(told(shown(filter, letter, redact, place)))
    } catch {
      return false
    }
  }
}

/** Letters that are of the cause, have the key, and pass the filter, as far as these are given. */
export const all = (...tests: ReadonlyArray<((letter: DeadLetters.DeadLetter) => boolean) | undefined>) => {
  const given = tests.filter((test) => test !== undefined)
  return given.length === 0 ? undefined : (letter: DeadLetters.DeadLetter) => given.every((test) => test(letter))
}

/** Letters of a cause. */
export const ofCause =
  (cause: string) =>
  (letter: DeadLetters.DeadLetter): boolean =>
    CauseId.of(DeadLetters.causeOf(letter)) === cause

/** Letters with a key, which are alike. */
export const { withKey } = Letters

/** The most letters of a selection: of those that are alike, one is meant. */
export const mostOf = ({ letter }: Pick<Selection, "letter">): number | undefined =>
  letter === undefined ? undefined : 1
