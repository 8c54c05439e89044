/** Filters of dead letters, from the command line. */
import { type DeadLetters, type Delivery, Metadata } from "@requeue/core"
import * as Flag from "effect/cli/Flag"
import * as Option from "effect/Option"
import * as DurationFlag from "./DurationFlag.ts"
import * as MomentFlag from "./MomentFlag.ts"
import * as TextFlag from "./TextFlag.ts"

/** Ten years, in milliseconds. */
const longest = 3650 * 24 * 60 * 60 * 1000

export const flags = {
  reason: Flag.Literals("reason", Metadata.reasons).pipe(
    Flag.withDescription("Only letters given up for this reason; can be repeated"),
    Flag.atLeast(0)
  ),
  error: TextFlag.make("error").pipe(
    Flag.withMetavar("TEXT"),
    Flag.withDescription("Only letters with this in their error's name or message, in any case"),
    Flag.optional
  ),
  origin: TextFlag.make("origin").pipe(
    Flag.withMetavar("QUEUE"),
    Flag.withDescription("Only letters that were given up by consumers of this queue"),
    Flag.optional
  ),
  id: TextFlag.make("id").pipe(
    Flag.filter(
      (id) => !/^\*+$/.test(id),
      () => "must not be * alone, which means every letter"
    ),
    Flag.withMetavar("ID"),
    Flag.withDescription(`Only the letter with this id, or with "order-1*" those whose id begins so; can be repeated`),
    Flag.atLeast(0)
  ),
  header: TextFlag.make("header").pipe(
    Flag.filter(
      (header) => !header.startsWith("="),
      () => "must begin with the name of a header"
    ),
    Flag.withAlias("H"),
    Flag.withMetavar("NAME[=VALUE]"),
    Flag.withDescription("Only letters with this header, and this value if one is given; can be repeated"),
    Flag.atLeast(0)
  ),
  since: MomentFlag.make("since", longest).pipe(
    Flag.withDescription("Only letters that were given up since this time, or within this duration"),
    Flag.optional
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
  readonly header: ReadonlyArray<string>
  readonly since: Option.Option<MomentFlag.Moment>
  readonly olderThan: Option.Option<number>
  readonly newerThan: Option.Option<number>
}

/** The part of a dead letter that filters look at. */
export type Subject = Pick<DeadLetters.DeadLetter, "id" | "origin" | "metadata" | "headers">

/** Answers the part of a delivered dead letter that filters look at. */
export const subject = ({ headers, metadata }: Delivery.Delivery): Subject => ({
  id: metadata.id,
  headers,
  metadata,
  origin: metadata.deadLetter
})

/** When a letter was given up; for one that Requeue did not give up, when it was published; `undefined` where nobody knows. */
export const since = ({ metadata, origin }: Pick<Subject, "metadata" | "origin">): number | undefined =>
  origin?.at ?? Metadata.publishedAt(metadata)

const holds = <A>(asked: Option.Option<A>, test: (value: A) => boolean): boolean =>
  Option.isNone(asked) || test(asked.value)

const isId = (asked: string, id: string): boolean =>
  asked === id || (asked.endsWith("*") && id.startsWith(asked.slice(0, -1)))

/** A text of the error; a letter without one has none of it. */
const hasError = (text: string, { origin }: Subject): boolean =>
  origin !== undefined && `${origin.error.name}: ${origin.error.message}`.toLowerCase().includes(text.toLowerCase())

const hasHeader = (asked: string, headers: Subject["headers"]): boolean => {
  const [, name = asked, value] = /^([^=]+)=(.*)$/s.exec(asked) ?? []
  return Object.hasOwn(headers, name) && (value === undefined || headers[name] === value)
}

/** Whether a letter passes the filter; one that lacks what a filter looks at does not. `now` is in milliseconds since 1970. */
export const matches =
  (filter: Filter, now: number) =>
  (letter: Subject): boolean => {
    const { origin } = letter
    // Of a letter that nobody knows the time of, no comparison holds.
    const time = since(letter) ?? Number.NaN
    const age = now - time
    return (
      (filter.reason.length === 0 || (origin !== undefined && filter.reason.includes(origin.reason))) &&
      (filter.id.length === 0 || filter.id.some((asked) => isId(asked, letter.id))) &&
      filter.header.every((asked) => hasHeader(asked, letter.headers)) &&
      holds(filter.since, (moment) => time >= MomentFlag.at(moment, now)) &&
      holds(filter.error, (text) => hasError(text, letter)) &&
      holds(filter.origin, (queue) => origin?.queue === queue) &&
      holds(filter.olderThan, (limit) => age > limit) &&
      holds(filter.newerThan, (limit) => age < limit)
    )
  }

/** Whether all letters pass the filter. */
export const isEmpty = (filter: Filter): boolean =>
  filter.reason.length === 0 &&
  [filter.id, filter.header].every((asked) => asked.length === 0) &&
  [filter.error, filter.origin, filter.since, filter.olderThan, filter.newerThan].every((asked) =>
    Option.isNone<unknown>(asked)
  )
