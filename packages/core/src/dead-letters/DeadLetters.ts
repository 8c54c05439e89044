/**
 * Dead letters: count them, list them with their causes, send them back to work, or remove them.
 *
 * All of it works on any broker, because a dead-letter queue is a queue like any other, and the cause of a dead letter
 * travels in its metadata.
 */
import * as Effect from "effect/Effect"
import { type Admin, Broker, type Service } from "../port/Broker.ts"
import type { BrokerError } from "../port/BrokerError.ts"
import type { Delivery } from "../message/Delivery.ts"
import type { Headers } from "../message/Message.ts"
import type { Attempt, ErrorSummary, Reason } from "../message/Metadata.ts"
import * as Options from "./internal/options.ts"
import type { ListOptions, PurgeOptions } from "./internal/options.ts"
import * as OptionNames from "../options/OptionNames.ts"
import { type Options as RedriveOptions, redrive, type Report } from "./internal/redrive.ts"
import * as Sweep from "./internal/sweep.ts"

export type { ListOptions, PurgeOptions, Selection } from "./internal/options.ts"
export type { Options as RedriveOptions, Report as RedriveReport } from "./internal/redrive.ts"

/** A dead letter. */
export interface DeadLetter {
  /** The message's id. */
  readonly id: string
  /** The bytes as they were published. */
  readonly body: Uint8Array
  readonly headers: Headers
  /** When the message was first published, in milliseconds since the epoch. */
  readonly firstPublished: number
  /** How often it has been redriven before. */
  readonly redrives: number
  /** The last failed attempts, newest last. */
  readonly history: ReadonlyArray<Attempt>
  /** How Requeue gave the message up; `undefined` for a message that came here in another way. */
  readonly origin:
    | {
        /** The queue that it was consumed from. */
        readonly queue: string
        /** The deliveries that it had there. */
        readonly attempts: number
        readonly reason: Reason
        /** When it was given up, in milliseconds since the epoch. */
        readonly at: number
        /** The error of the last attempt. */
        readonly error: ErrorSummary
      }
    | undefined
}

/** Dead letters with the same cause. Fields are `undefined` where Requeue did not give the messages up. */
export interface Group {
  /** The queue that they were consumed from. */
  readonly queue: string | undefined
  readonly reason: Reason | undefined
  /** The error's name. */
  readonly error: string | undefined
  /** The error's message, of the newest dead letter. */
  readonly message: string | undefined
  /** The number of dead letters. */
  readonly count: number
  /** When the oldest was given up, in milliseconds since the epoch. */
  readonly oldest: number
  /** When the newest was given up, in milliseconds since the epoch. */
  readonly newest: number
}

/** The dead letters in one queue. */
export interface DeadLetters {
  /** The dead-letter queue's name. */
  readonly queue: string
  /** The number of waiting dead letters; `undefined` when the broker cannot count. */
  readonly count: Effect.Effect<number | undefined, BrokerError>
  /** Lists up to `limit` dead letters (default: 100), oldest first. */
  readonly list: (options?: ListOptions) => Effect.Effect<ReadonlyArray<DeadLetter>, BrokerError>
  /** Groups the first `limit` dead letters (default: 1,000) by cause, most frequent first. */
  readonly group: (options?: ListOptions) => Effect.Effect<ReadonlyArray<Group>, BrokerError>
  /**
   * Sends dead letters back to work: each is published and confirmed, and only then removed from this queue. Its attempts
   * start again at 1. Dead letters that the options pass over stay in this queue.
   *
   * @throws RangeError when an option is unknown, of another kind or out of its range, or `to` is this queue itself
   */
  readonly redrive: (options?: RedriveOptions) => Effect.Effect<Report, BrokerError>
  /**
   * Removes dead letters for good, all or those that `filter` selects, and returns their number.
   *
   * @throws RangeError when an option is unknown or of another kind, or unless one of `all` and `filter` is given
   */
  readonly purge: (options: PurgeOptions) => Effect.Effect<number, BrokerError>
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

/**
 * The dead letters in a queue, for example `orders.dlq`.
 *
 * @example
 * ```ts
 * import { MemoryBroker } from "@requeue/adapter-memory"
 * import { DeadLetters } from "@requeue/core"
 * import { Effect } from "effect"
 *
 * const program = Effect.gen(function* () {
 *   const letters = yield* DeadLetters.make("orders.dlq")
 *   return yield* letters.redrive({ limit: 10, filter: ({ body }) => body.length < 1000 })
 * })
 * const report = await Effect.runPromise(Effect.provide(program, MemoryBroker.layer()))
 * report // => { redriven: 0, filtered: 0, guarded: 0, homeless: 0 }
 * ```
 */
export const make = (queue: string): Effect.Effect<DeadLetters, never, Broker> =>
  Effect.map(Broker, (broker) => {
    const list = (limit: number) =>
      Effect.map(broker.admin.peek(queue, limit), (deliveries) => deliveries.map(fromDelivery))
    return {
      queue,
      count: count(broker.admin, queue),
      list: (options) =>
        OptionNames.orDie(Options.list("DeadLetters.list", queue, options), () => list(options?.limit ?? 100)),
      group: (options) =>
        OptionNames.orDie(Options.list("DeadLetters.group", queue, options), () =>
          Effect.map(list(options?.limit ?? 1000), group)
        ),
      redrive: (options) =>
        OptionNames.orDie(Options.redrive("DeadLetters.redrive", queue, options), () =>
          redrive(broker, queue, options)
        ),
      purge: (options) =>
        OptionNames.orDie(Options.purge("DeadLetters.purge", queue, options), () =>
          options.all === true && options.dryRun !== true ? broker.admin.purge(queue) : discard(broker, queue, options)
        )
    }
  })

const discard = (broker: Service, queue: string, options: PurgeOptions): Effect.Effect<number, BrokerError> =>
  Effect.suspend(() => {
    let removed = 0
    const steps: Sweep.Steps = {
      select: (letter) => {
        const isSelected = Sweep.matches(letter, options.filter)
        if (isSelected) removed++
        return isSelected
      },
      beforeRemoval: () => Effect.void,
      onStep: () => {}
    }
    return Effect.map(Sweep.run(broker, queue, options, steps), () => removed)
  })

const count = (admin: Admin, queue: string): Effect.Effect<number | undefined, BrokerError> =>
  Effect.map(admin.counts(queue), ({ delayed = 0, ready }) => (ready === undefined ? undefined : ready + delayed))

/** Groups dead letters by queue of origin, reason and error name, most frequent first. */
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
