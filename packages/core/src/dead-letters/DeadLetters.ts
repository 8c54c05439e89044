/**
 * Dead letters as a product: count them, see why, and put them back.
 *
 * Works on any broker through the port alone: a dead-letter queue is a queue like any other, and what became of a
 * message travels in its metadata.
 */
import * as Effect from "effect/Effect"
import { type Admin, Broker, type Service } from "../port/Broker.ts"
import type { BrokerError } from "../port/BrokerError.ts"
import type { Delivery } from "../message/Delivery.ts"
import type { Headers } from "../message/Message.ts"
import type { Attempt, ErrorSummary, Reason } from "../message/Metadata.ts"
import { type Options as RedriveOptions, redrive, type Report } from "./internal/redrive.ts"
import * as Sweep from "./internal/sweep.ts"

export type { Options as RedriveOptions, Report as RedriveReport } from "./internal/redrive.ts"

export interface DeadLetter {
  readonly id: string
  /** The bytes as they were published. */
  readonly body: Uint8Array
  readonly headers: Headers
  /** Milliseconds since the epoch. */
  readonly firstPublished: number
  /** Times it has been redriven before. */
  readonly redrives: number
  readonly history: ReadonlyArray<Attempt>
  /** What Requeue wrote when it gave the message up; `undefined` for a message that came here in another way. */
  readonly origin:
    | {
        readonly queue: string
        readonly attempts: number
        readonly reason: Reason
        /** Milliseconds since the epoch. */
        readonly at: number
        readonly error: ErrorSummary
      }
    | undefined
}

/** Dead letters of one cause. */
export interface Group {
  readonly queue: string | undefined
  readonly reason: Reason | undefined
  /** The error's name. */
  readonly error: string | undefined
  /** The newest one's error message. */
  readonly message: string | undefined
  readonly count: number
  /** Milliseconds since the epoch. */
  readonly oldest: number
  readonly newest: number
}

export interface DeadLetters {
  readonly queue: string
  /** Dead letters that wait; `undefined` when the broker cannot count. */
  readonly count: Effect.Effect<number | undefined, BrokerError>
  /** Up to `limit` (default 100) of them, oldest first. */
  readonly list: (options?: { readonly limit?: number }) => Effect.Effect<ReadonlyArray<DeadLetter>, BrokerError>
  /** The causes of the first `limit` (default 1,000), most frequent first. */
  readonly group: (options?: { readonly limit?: number }) => Effect.Effect<ReadonlyArray<Group>, BrokerError>
  /**
   * Sends dead letters back to work: each is published, confirmed, and only then removed here. Its attempts start again
   * at 1. What the options pass over stays where it is.
   */
  readonly redrive: (options?: RedriveOptions) => Effect.Effect<Report, BrokerError>
  /** Removes them for good and answers how many: all, or those that a filter means and that wait when it begins. */
  readonly purge: (options?: PurgeOptions) => Effect.Effect<number, BrokerError>
}

export interface PurgeOptions extends Pick<RedriveOptions, "filter" | "signal"> {
  /** Count what would be removed, and leave everything where it is. */
  readonly dryRun?: boolean | undefined
}

const fromDelivery = ({ body, headers, metadata }: Delivery): DeadLetter => ({
  id: metadata.id,
  body,
  headers,
  firstPublished: metadata.firstPublished,
  redrives: metadata.redrives,
  history: metadata.history,
  origin: metadata.deadLetter
})

/** The dead letters in a queue, for example `webhooks.dlq`. */
export const make = (queue: string): Effect.Effect<DeadLetters, never, Broker> =>
  Effect.map(Broker, (broker) => {
    const list = (limit: number) =>
      Effect.map(broker.admin.peek(queue, limit), (deliveries) => deliveries.map(fromDelivery))
    return {
      queue,
      count: count(broker.admin, queue),
      list: ({ limit = 100 } = {}) => list(limit),
      group: ({ limit = 1000 } = {}) => Effect.map(list(limit), group),
      redrive: (options) => redrive(broker, queue, options),
      purge: (options = {}) => {
        const { dryRun, filter } = options
        return filter === undefined && dryRun !== true ? broker.admin.purge(queue) : discard(broker, queue, options)
      }
    }
  })

const discard = (broker: Service, queue: string, options: PurgeOptions): Effect.Effect<number, BrokerError> =>
  Effect.suspend(() => {
    let removed = 0
    const work: Sweep.Work = {
      choose: (letter) => {
        const isChosen = Sweep.isMeant(letter, options.filter)
        if (isChosen) removed++
        return isChosen
      },
      before: () => Effect.void,
      onStep: () => {}
    }
    return Effect.map(Sweep.run(broker, queue, options, work), () => removed)
  })

const count = (admin: Admin, queue: string): Effect.Effect<number | undefined, BrokerError> =>
  Effect.map(admin.counts(queue), ({ delayed = 0, ready }) => (ready === undefined ? undefined : ready + delayed))

/** Groups dead letters by origin, reason and error name, most frequent first. */
export const group = (letters: ReadonlyArray<DeadLetter>): ReadonlyArray<Group> => {
  const groups = Map.groupBy(letters, ({ origin }) =>
    JSON.stringify([origin?.queue, origin?.reason, origin?.error.name])
  )
  return [...groups.values()]
    .map((members) => {
      const times = members.map(({ firstPublished, origin }) => origin?.at ?? firstPublished)
      const { origin } = members.at(-1)!
      return {
        queue: origin?.queue,
        reason: origin?.reason,
        error: origin?.error.name,
        message: origin?.error.message,
        count: members.length,
        oldest: Math.min(...times),
        newest: Math.max(...times)
      }
    })
    .toSorted((a, b) => b.count - a.count)
}
