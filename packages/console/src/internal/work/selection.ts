/** The letters that an operator selects: by a filter, by a cause, by a key, or all. */
import { ErrorPattern } from "@requeue/core/port"
import { DeadLetters, LetterFilter } from "@requeue/operations"
import { mark, type Redact } from "../../Redaction.ts"
import type { Place } from "../paths.ts"
import * as CauseId from "./causeId.ts"
import * as Letters from "./letters.ts"

/** The selected letters of a job. */
export interface Selection {
  /** The id of the cause; `undefined` for all causes. */
  readonly cause: string | undefined
  /** The key of the letter; `undefined` for all letters of the cause. */
  readonly letter: string | undefined
  /** The filter, as fields of an address; empty without a filter. */
  readonly search: Pick<Place, "filter">
  /** The filter, for the audit; `undefined` without a filter. */
  readonly filter: LetterFilter.LetterFilter | undefined
  /** A description of the letters in words. */
  readonly title: string
  /** Whether a letter is selected; `undefined` to select all. */
  readonly isMeant: ((letter: DeadLetters.DeadLetter) => boolean) | undefined
}

/** Describes the selected letters in words. */
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

/** Whether two selections have the same letters, apart from the time that ages refer to. */
export const isSame = (one: Selection, other: Selection): boolean =>
  JSON.stringify([one.cause, one.letter, one.search]) === JSON.stringify([other.cause, other.letter, other.search])

/**
 * Returns the letter with the pattern of its error message, because messages may quote bodies, which not every role may
 * see.
 */
const patterned = (letter: LetterFilter.Subject): LetterFilter.Subject => {
  const { origin } = letter
  if (origin === undefined) return letter
  const error = { name: origin.error.name, message: ErrorPattern.of(origin.error.message) }
  return { ...letter, origin: { ...origin, error } }
}

/** Returns the parts of a letter that the filter compares, as operators may see them. */
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
 * Returns a function that reports whether a letter passes a filter both before and after redaction, because filters must
 * not reveal hidden parts. A letter on which the hook fails does not pass. `now` is in milliseconds since the epoch.
 */
export const filtering = (filter: LetterFilter.LetterFilter, now: number, redact: Redact, place: Place) => {
  const passes = LetterFilter.matches(filter, now)
  return (letter: LetterFilter.Subject): boolean => {
    const told = filter.error === undefined ? (each: LetterFilter.Subject) => each : patterned
    if (!passes(told(letter))) return false
    try {
      // The pattern comes last: the hook cannot find a secret that has become a placeholder in part.
      return passes(told(shown(filter, letter, redact, place)))
    } catch {
      return false
    }
  }
}

/** Combines tests into one. A test that is `undefined` passes every letter. */
export const all = (...tests: ReadonlyArray<((letter: DeadLetters.DeadLetter) => boolean) | undefined>) => {
  const given = tests.filter((test) => test !== undefined)
  return given.length === 0 ? undefined : (letter: DeadLetters.DeadLetter) => given.every((test) => test(letter))
}

/** Selects the letters of a cause. */
export const ofCause =
  (cause: string) =>
  (letter: DeadLetters.DeadLetter): boolean =>
    CauseId.of(DeadLetters.causeOf(letter)) === cause

/** Selects the letters with a key, which are identical. */
export const { withKey } = Letters

/** Returns the largest number of letters of a selection: one, if it names one of several identical letters. */
export const mostOf = ({ letter }: Pick<Selection, "letter">): number | undefined =>
  letter === undefined ? undefined : 1
