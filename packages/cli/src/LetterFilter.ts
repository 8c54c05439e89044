/** Filters of dead letters, from the command line. */
import { Metadata } from "@requeue/core/port"
import { LetterFilter } from "@requeue/operations"
import * as Flag from "effect/cli/Flag"
import * as Option from "effect/Option"
import * as DurationFlag from "./DurationFlag.ts"
import * as MomentFlag from "./MomentFlag.ts"
import * as TextFlag from "./TextFlag.ts"

const { longest } = LetterFilter

export const flags = {
  reason: Flag.Literals("reason", Metadata.reasons).pipe(
    Flag.withDescription("Only letters that were dead-lettered for this reason; can be repeated"),
    Flag.atLeast(0)
  ),
  error: TextFlag.make("error").pipe(
    Flag.withMetavar("TEXT"),
    Flag.withDescription(
      "Only letters with this text in the name or message of their error or its causes; case does not matter"
    ),
    Flag.optional
  ),
  origin: TextFlag.make("origin").pipe(
    Flag.withMetavar("QUEUE"),
    Flag.withDescription("Only letters that consumers of this queue dead-lettered"),
    Flag.optional
  ),
  id: TextFlag.make("id").pipe(
    Flag.filter(
      (id) => LetterFilter.idProblem(id) === undefined,
      (id) => LetterFilter.idProblem(id) ?? ""
    ),
    Flag.withMetavar("ID"),
    Flag.withDescription(
      `Only the letter with this id, or with "order-1*" those whose id begins with order-1; can be repeated`
    ),
    Flag.atLeast(0)
  ),
  header: TextFlag.make("header").pipe(
    Flag.filter(
      (header) => LetterFilter.headerProblem(header) === undefined,
      (header) => LetterFilter.headerProblem(header) ?? ""
    ),
    Flag.withAlias("H"),
    Flag.withMetavar("NAME[=VALUE]"),
    Flag.withDescription("Only letters with this header, and this value if one is given; can be repeated"),
    Flag.atLeast(0)
  ),
  since: MomentFlag.make("since").pipe(
    Flag.withDescription("Only letters that were dead-lettered since this time, or within this duration"),
    Flag.optional
  ),
  olderThan: DurationFlag.make("older-than", longest).pipe(
    Flag.withDescription("Only letters that were dead-lettered longer ago than this"),
    Flag.optional
  ),
  newerThan: DurationFlag.make("newer-than", longest).pipe(
    Flag.withDescription("Only letters that were dead-lettered within this time"),
    Flag.optional
  )
}

/** The values of the filter flags. Ages are in milliseconds. */
export interface Filter {
  readonly reason: ReadonlyArray<Metadata.Reason>
  readonly error: Option.Option<string>
  readonly origin: Option.Option<string>
  readonly id: ReadonlyArray<string>
  readonly header: ReadonlyArray<string>
  readonly since: Option.Option<LetterFilter.Moment>
  readonly olderThan: Option.Option<number>
  readonly newerThan: Option.Option<number>
}

/** The part of a dead letter that filters read. */
export type Subject = LetterFilter.Subject

export const { since } = LetterFilter

/** Returns the filter of the flags in the form that an audit records. */
export const of = ({
  error,
  header,
  id,
  newerThan,
  olderThan,
  origin,
  reason,
  since
}: Filter): LetterFilter.LetterFilter => ({
  ...(reason.length === 0 ? {} : { reason }),
  ...(id.length === 0 ? {} : { id }),
  ...(header.length === 0 ? {} : { header }),
  ...Object.fromEntries(
    Object.entries({ error, origin, since, olderThan, newerThan }).flatMap(([name, value]) =>
      Option.isSome<unknown>(value) ? [[name, value.value]] : []
    )
  )
})

/**
 * Returns a function that reports whether a letter passes the filter. A letter without a property that the filter names
 * does not pass. `now` is in milliseconds since 1970.
 */
export const matches = (filter: Filter, now: number) => LetterFilter.matches(of(filter), now)

/** Whether the filter is empty, so every letter passes. */
export const isEmpty = (filter: Filter): boolean => LetterFilter.isEmpty(of(filter))
