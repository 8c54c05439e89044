/** Filters of delayed messages, from the command line. */
import { Delay } from "@requeue/core"
import type { DelayedMessages } from "@requeue/operations"
import * as Flag from "effect/cli/Flag"
import * as Option from "effect/Option"
import * as DurationFlag from "./DurationFlag.ts"
import * as TextFlag from "./TextFlag.ts"

export const flags = {
  id: TextFlag.make("id").pipe(
    Flag.withMetavar("ID"),
    Flag.withDescription("Only the message with this id; can be repeated"),
    Flag.atLeast(0)
  ),
  error: TextFlag.make("error").pipe(
    Flag.withMetavar("TEXT"),
    Flag.withDescription("Only messages whose last attempt failed with this text in its error; case does not matter"),
    Flag.optional
  ),
  dueWithin: DurationFlag.make("due-within", Delay.max).pipe(
    Flag.withDescription("Only messages that are due within this time"),
    Flag.optional
  ),
  dueAfter: DurationFlag.make("due-after", Delay.max).pipe(
    Flag.withDescription("Only messages that are due later than this"),
    Flag.optional
  )
}

/** The values of the flags. Times are in milliseconds. */
export interface Filter {
  readonly id: ReadonlyArray<string>
  readonly error: Option.Option<string>
  readonly dueWithin: Option.Option<number>
  readonly dueAfter: Option.Option<number>
}

/** The part of a delayed message that filters read. */
export type Subject = Pick<DelayedMessages.DelayedMessage, "id" | "due" | "history">

const holds = <A>(asked: Option.Option<A>, test: (value: A) => boolean): boolean =>
  Option.isNone(asked) || test(asked.value)

/** Returns the error of the last failed attempt; an empty text if no attempt has failed. */
export const errorOf = ({ history }: Pick<Subject, "history">): string => history.at(-1)?.error ?? ""

/**
 * Returns whether a message passes the filter. A message without a due time passes no filter by time. `now` is in
 * milliseconds since 1970.
 */
export const matches =
  ({ dueAfter, dueWithin, error, id }: Filter, now: number) =>
  (message: Subject): boolean => {
    const { due = Number.NaN } = message
    return (
      (id.length === 0 || id.includes(message.id)) &&
      holds(error, (text) => errorOf(message).toLowerCase().includes(text.toLowerCase())) &&
      holds(dueWithin, (limit) => due - now <= limit) &&
      holds(dueAfter, (limit) => due - now > limit)
    )
  }

/** Whether the filter is empty, so every message passes. */
export const isEmpty = ({ dueAfter, dueWithin, error, id }: Filter): boolean =>
  id.length === 0 && Option.isNone(error) && [dueWithin, dueAfter].every(Option.isNone)
