/**
 * The books of a queue: published = acked + dead-lettered + dropped + still queued, whatever broke in between.
 *
 * For the fault tests of an adapter. A consumer tells the books what it did; the test cuts connections, restarts the
 * broker or kills a consumer, and waits for an end of every message. Then it looks behind the adapter, with the broker's
 * own client, and the books must balance. {@link Workload} has messages and a consumer to go with them.
 */
import type { Event } from "@requeue/core"
import type * as Effect from "effect/Effect"
import * as Check from "./Check.ts"
import * as Wait from "./Wait.ts"

/** All messages are known by their id. */
export interface Books {
  readonly published: ReadonlyArray<string>
  /** Runs of handlers, in the order in which they began. */
  readonly runs: ReadonlyArray<string>
  /** Told to have succeeded; so for the next two. */
  readonly acked: ReadonlySet<string>
  readonly deadLettered: ReadonlySet<string>
  readonly dropped: ReadonlySet<string>
  readonly events: ReadonlyArray<Event.Event>
  /** The consumer's hook. Several consumers may have the same books. */
  readonly onEvent: Event.Hook
  /** For a handler, when it begins. */
  readonly ran: (id: string) => void
}

/**
 * Opens the books of messages that are to be published.
 *
 * ```ts
 * import { Books } from "@requeue/conformance"
 *
 * const books = Books.make(["a", "b", "c"])
 * books.onEvent({ _tag: "Succeeded", queue: "q", id: "a", attempts: 1 })
 * Books.missing(books) // => ["b", "c"]
 * ```
 */
export const make = (published: ReadonlyArray<string>): Books => {
  const runs: Array<string> = []
  const events: Array<Event.Event> = []
  const ends = { Succeeded: new Set<string>(), DeadLettered: new Set<string>(), Dropped: new Set<string>() }
  return {
    published,
    runs,
    acked: ends.Succeeded,
    deadLettered: ends.DeadLettered,
    dropped: ends.Dropped,
    events,
    onEvent: (event) => {
      events.push(event)
      if (event._tag === "Succeeded" || event._tag === "DeadLettered" || event._tag === "Dropped") {
        ends[event._tag].add(event.id)
      }
    },
    ran: (id) => void runs.push(id)
  }
}

/** Those of these messages, or of all, that have had no end so far. */
export const missing = (
  { acked, deadLettered, dropped, published }: Books,
  of: ReadonlyArray<string> = published
): ReadonlyArray<string> => of.filter((id) => !acked.has(id) && !deadLettered.has(id) && !dropped.has(id))

/** How many messages have had an end. */
export const ended = (books: Books): number => books.published.length - missing(books).length

/**
 * Waits for an end of every message, or of these; fails with those that have none.
 *
 * `within` is in milliseconds, 60,000 by default. What comes twice may still come afterwards.
 */
export const untilEnded = (
  books: Books,
  { of = books.published, within }: { readonly of?: ReadonlyArray<string>; readonly within?: number } = {}
): Effect.Effect<void, Check.CheckFailed> =>
  Wait.until(
    () => {
      const left = missing(books, of)
      return `an end of every message; of ${left.length} there is none: ${left.slice(0, 20).join(" ")}`
    },
    () => missing(books, of).length === 0,
    within
  )

/** What the broker holds, seen without the adapter. */
export interface Found {
  /** Ready, in flight and delayed. */
  readonly queued: Iterable<string>
  readonly deadLetters: Iterable<string>
}

/**
 * Balances the books with what is in the broker. When to use: once no consumer runs any more.
 *
 * Every published message must be acked, dropped, a dead letter that was seen, or still queued; and every dead letter that
 * was told must have been seen. One that was seen and not told is still queued as well, or it was told that its settlement
 * failed and the message came again to another end: the broker's answer was lost. Throws {@link Check.CheckFailed} with the
 * ids for which that is not so.
 *
 * ```ts
 * import { Books } from "@requeue/conformance"
 *
 * const books = Books.make(["a", "b", "c"])
 * books.onEvent({ _tag: "Succeeded", queue: "q", id: "a", attempts: 1 })
 * Books.balance(books, { queued: ["b", "c"], deadLetters: [] })
 * ```
 */
export const balance = (books: Books, found: Found): void => {
  const { acked, deadLettered, dropped, events, published } = books
  const letters = new Set(found.deadLetters)
  const queued = new Set(found.queued)
  const failed = new Set(
    events.flatMap((event) => (event._tag === "SettleFailed" && event.settlement === "DeadLetter" ? [event.id] : []))
  )
  const isTold = (id: string): boolean => deadLettered.has(id) || (failed.has(id) && (acked.has(id) || dropped.has(id)))
  const known = new Set(published)
  const accounted = new Set([...acked, ...dropped, ...letters, ...queued])
  const none = (what: string, ids: ReadonlyArray<string>) => Check.equal(what, ids, [])
  none(
    "published, and nowhere now",
    published.filter((id) => !accounted.has(id))
  )
  none(
    "there, and never published",
    [...accounted].filter((id) => !known.has(id))
  )
  none(
    "told as dead letters, and not seen",
    [...deadLettered].filter((id) => !letters.has(id))
  )
  none(
    "seen as dead letters, and neither told nor queued",
    [...letters].filter((id) => !isTold(id) && !queued.has(id))
  )
}
