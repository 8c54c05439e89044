/**
 * Books keep account of a queue's messages in fault tests: published = acked + dead-lettered + dropped + still queued,
 * whatever broke in between.
 *
 * A consumer records in the books what it does. The test cuts connections, restarts the broker or kills a consumer, and
 * waits until every message has ended. Then it reads the queues with the broker's own client, and the books must balance.
 * {@link Workload} has messages and a consumer for such tests.
 */
import type { Event } from "@requeue/core"
import type * as Effect from "effect/Effect"
import * as Check from "./Check.ts"
import * as Wait from "./Wait.ts"

/** The account of a queue's messages, by their ids. */
export interface Books {
  readonly published: ReadonlyArray<string>
  /** The message of each handler run, in the order in which the runs began. */
  readonly runs: ReadonlyArray<string>
  /** Messages with an event `Succeeded`. */
  readonly acked: ReadonlySet<string>
  /** Messages with an event `DeadLettered`. */
  readonly deadLettered: ReadonlySet<string>
  /** Messages with an event `Dropped`. */
  readonly dropped: ReadonlySet<string>
  readonly events: ReadonlyArray<Event.Event>
  /** The function for the option `onEvent` of consumers under test. Several consumers may use the same one. */
  readonly onEvent: Event.Hook
  /** Records a run of a handler. Call it when the handler begins. */
  readonly ran: (id: string) => void
}

/**
 * Makes the books for messages that a test will publish.
 *
 * @example
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

/** Returns the messages that have not ended so far. It checks all published messages, or only those in `of`. */
export const missing = (
  { acked, deadLettered, dropped, published }: Books,
  of: ReadonlyArray<string> = published
): ReadonlyArray<string> => of.filter((id) => !acked.has(id) && !deadLettered.has(id) && !dropped.has(id))

/** Returns the number of messages that have ended. */
export const ended = (books: Books): number => books.published.length - missing(books).length

/**
 * Waits until every message has ended, or every message in `of`. Fails with {@link Check.CheckFailed}, which names the messages
 * that have not ended.
 *
 * `within` is in milliseconds; default 120,000. A message that was stored twice may still be delivered again afterwards.
 */
export const untilEnded = (
  books: Books,
  { of = books.published, within }: { readonly of?: ReadonlyArray<string>; readonly within?: number } = {}
): Effect.Effect<void, Check.CheckFailed> =>
  Wait.until(
    () => {
      const left = missing(books, of)
      return `the end of every message; ${left.length} have not ended: ${left.slice(0, 20).join(" ")}`
    },
    () => missing(books, of).length === 0,
    within
  )

/** The messages in the broker, seen without the adapter. */
export interface Found {
  /** Messages of the queue: ready, in flight and delayed. */
  readonly queued: Iterable<string>
  /** Messages of the dead-letter queue. */
  readonly deadLetters: Iterable<string>
}

/**
 * Checks that the books agree with the broker. Call it after all consumers have stopped.
 *
 * Every published message must be acked, dropped, found as a dead letter, or found in the queue. Every dead letter that an
 * event has reported must be found in the broker. A dead letter without such an event must still be in the queue, or have
 * had an event `SettleFailed` before another end: the broker's answer was lost. Throws {@link Check.CheckFailed} with the
 * ids of the messages for which this does not hold.
 *
 * @example
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
    "published, and found nowhere",
    published.filter((id) => !accounted.has(id))
  )
  none(
    "found, and never published",
    [...accounted].filter((id) => !known.has(id))
  )
  none(
    "reported as dead letters, and not found",
    [...deadLettered].filter((id) => !letters.has(id))
  )
  none(
    "found as dead letters, and neither reported nor queued",
    [...letters].filter((id) => !isTold(id) && !queued.has(id))
  )
}
