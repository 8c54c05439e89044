/** Which dead letters are meant: flags, and the question that they ask of each. */
import type { DeadLetters, Delivery, Metadata } from "@requeue/core"
import * as Flag from "effect/cli/Flag"
import * as Option from "effect/Option"
import * as DurationFlag from "./DurationFlag.ts"

const reasons = [
  "retries-exhausted",
  "permanent",
  "undecodable",
  "too-old"
] as const satisfies ReadonlyArray<Metadata.Reason>

/** Ten years, in milliseconds. */
const longest = 3650 * 24 * 60 * 60 * 1000

export const flags = {
  reason: Flag.Literals("reason", reasons).pipe(
    Flag.withDescription("Only letters given up for this reason; can be repeated"),
    Flag.atLeast(0)
  ),
  error: Flag.String("error").pipe(
    Flag.withMetavar("TEXT"),
    Flag.withDescription("Only letters with this in their error's name or message, in any case"),
    Flag.optional
  ),
  origin: Flag.String("origin").pipe(
    Flag.withMetavar("QUEUE"),
    Flag.withDescription("Only letters that were given up by consumers of this queue"),
    Flag.optional
  ),
  id: Flag.String("id").pipe(
    Flag.withMetavar("ID"),
    Flag.withDescription("Only the letter with this id; can be repeated"),
    Flag.atLeast(0)
  ),
  olderThan: DurationFlag.make("older-than", longest).pipe(
    Flag.withDescription("Only letters that were given up longer ago than this"),
    Flag.optional
  ),
  newerThan: DurationFlag.make("newer-than", longest).pipe(
    Flag.withDescription("Only letters that were given up within this time"),
    Flag.optional
  )
}

/** The values of the flags. Ages are in milliseconds. */
export interface Filter {
  readonly reason: ReadonlyArray<Metadata.Reason>
  readonly error: Option.Option<string>
  readonly origin: Option.Option<string>
  readonly id: ReadonlyArray<string>
  readonly olderThan: Option.Option<number>
  readonly newerThan: Option.Option<number>
}

/** What a filter asks about. */
export type Subject = Pick<DeadLetters.DeadLetter, "id" | "origin" | "firstPublished">

/** What a filter asks about a letter that was delivered. */
export const subject = ({ metadata }: Delivery.Delivery): Subject => ({
  id: metadata.id,
  firstPublished: metadata.firstPublished,
  origin: metadata.deadLetter
})

/** When a letter was given up; a foreign one, when it was published. Milliseconds since 1970. */
export const since = ({ firstPublished, origin }: Subject): number => origin?.at ?? firstPublished

const holds = <A>(asked: Option.Option<A>, test: (value: A) => boolean): boolean =>
  Option.isNone(asked) || test(asked.value)

/** `now` is in milliseconds since 1970. Letters that say nothing of what is asked are not meant. */
export const matches =
  (filter: Filter, now: number) =>
  (letter: Subject): boolean => {
    const { origin } = letter
    const age = now - since(letter)
    const error = `${origin?.error.name ?? ""}: ${origin?.error.message ?? ""}`.toLowerCase()
    return (
      (filter.reason.length === 0 || (origin !== undefined && filter.reason.includes(origin.reason))) &&
      (filter.id.length === 0 || filter.id.includes(letter.id)) &&
      holds(filter.error, (text) => error.includes(text.toLowerCase())) &&
      holds(filter.origin, (queue) => origin?.queue === queue) &&
      holds(filter.olderThan, (limit) => age > limit) &&
      holds(filter.newerThan, (limit) => age < limit)
    )
  }

/** True when every letter is meant. */
export const isEmpty = (filter: Filter): boolean =>
  filter.reason.length === 0 &&
  filter.id.length === 0 &&
  [filter.error, filter.origin].every(Option.isNone) &&
  [filter.olderThan, filter.newerThan].every(Option.isNone)
