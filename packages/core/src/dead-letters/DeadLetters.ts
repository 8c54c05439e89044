/**
 * Dead letters: count them, list them with their causes, send them back to work, or remove them.
 *
 * All of it works on any broker, because a dead-letter queue is a queue like any other, and the cause of a dead letter
 * travels in its metadata.
 */
import * as Effect from "effect/Effect"
import { Broker, type Service } from "../port/Broker.ts"
import type { BrokerError } from "../port/BrokerError.ts"
import type { DeadLetter } from "./internal/deadLetter.ts"
import * as Groups from "./internal/groups.ts"
import * as Held from "./internal/held.ts"
import * as Look from "./internal/look.ts"
import * as Options from "./internal/options.ts"
import type { ListOptions, PurgeOptions } from "./internal/options.ts"
import * as OptionNames from "../options/OptionNames.ts"
import { tell } from "./internal/partial.ts"
import { purge } from "./internal/purge.ts"
import { type DeadLettersStopped, type Options as RedriveOptions, redrive, type Report } from "./internal/redrive.ts"

export type { DeadLetter } from "./internal/deadLetter.ts"
export { type Group, group, type Groups } from "./internal/groups.ts"
export type { ListOptions, PurgeOptions, Selection } from "./internal/options.ts"
export { DeadLettersStopped, type Options as RedriveOptions, type Report as RedriveReport } from "./internal/redrive.ts"
export type { FailedLetter } from "./internal/books.ts"

/**
 * The dead letters in one queue. Where parts of the broker do not answer, each call works on the others, and a warning of the
 * log names those that are left out.
 */
export interface DeadLetters {
  /** The dead-letter queue's name. */
  readonly queue: string
  /**
   * The number of dead letters; `undefined` when the broker cannot count. Those that somebody else has for longer than a
   * second, such as a consumer, count where the broker tells their number.
   */
  readonly count: Effect.Effect<number | undefined, BrokerError>
  /**
   * Why parts of the broker do not answer, each with its error: what the other calls tell and do is without the letters
   * there. Empty when all of them answer.
   */
  readonly missing: Effect.Effect<ReadonlyArray<BrokerError>, BrokerError>
  /**
   * Lists up to `limit` dead letters (default: 100), oldest first. Where the broker shows only the first letters of each group,
   * as SQS does of FIFO queues, it lists those, and a warning of the log tells how many are hidden.
   */
  readonly list: (options?: ListOptions) => Effect.Effect<ReadonlyArray<DeadLetter>, BrokerError>
  /**
   * Groups up to `limit` dead letters (default: 1,000), oldest first, by cause: by queue of origin, reason, error name and
   * error pattern. The most frequent cause comes first. `looked` and `total` of the answer say how many of them it tells of.
   */
  readonly group: (options?: ListOptions) => Effect.Effect<Groups.Groups, BrokerError>
  /**
   * Sends dead letters back to work: each is published and confirmed, and only then removed from this queue. Its attempts
   * start again at 1. Dead letters that the options pass over stay in this queue.
   *
   * Letters that are passed over are held until the end, so that the broker shows those behind them: up to 1,000, or
   * 64 MiB of bodies. Each one beyond these goes behind the others in its queue, as a confirmed copy that is the same.
   *
   * A letter whose copy is refused stays as well, and the others go on. The redrive fails when the first 100 are refused
   * and none is taken, when the broker is away for a minute, and when letters have been counted and none comes for
   * 10 seconds. Where the broker cannot count, 3 seconds without a letter are the end.
   *
   * @throws RangeError when an option is unknown, of another kind or out of its range, or `to` is this queue itself
   */
  readonly redrive: (options?: RedriveOptions) => Effect.Effect<Report, BrokerError | DeadLettersStopped>
  /**
   * Removes dead letters for good, all or those that `filter` selects, and returns the number of those that are gone. With
   * a filter, it goes through the queue as {@link DeadLetters.redrive} does. It fails when it has removed what it could see,
   * and the broker hides letters behind those of their groups that stay.
   *
   * @throws RangeError when an option is unknown or of another kind, or unless one of `all` and `filter` is given
   */
  readonly purge: (options: PurgeOptions) => Effect.Effect<number, BrokerError | DeadLettersStopped>
}

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
 * report.redriven // => 0
 * ```
 */
export const make = (queue: string): Effect.Effect<DeadLetters, never, Broker> =>
  Effect.map(Broker, (broker) => ({
    queue,
    count: tell(broker, queue, "count", (watched) => count(watched, queue)),
    missing: Effect.map(broker.admin.counts(queue), ({ missing = [] }) => missing),
    list: (options) =>
      OptionNames.orDie(Options.list("DeadLetters.list", queue, options), () =>
        tell(broker, queue, "list", (watched) => Look.list(watched, queue, options))
      ),
    group: (options) =>
      OptionNames.orDie(Options.list("DeadLetters.group", queue, options), () =>
        tell(broker, queue, "group", (watched) => Look.group(watched, queue, options))
      ),
    redrive: (options) =>
      OptionNames.orDie(Options.redrive("DeadLetters.redrive", queue, options), () =>
        tell(broker, queue, "redrive", (watched) => redrive(watched, queue, options))
      ),
    purge: (options) =>
      OptionNames.orDie(Options.purge("DeadLetters.purge", queue, options), () =>
        tell(broker, queue, "purge", (watched) => purge(watched, queue, options))
      )
  }))

const count = (broker: Service, queue: string): Effect.Effect<number | undefined, BrokerError> =>
  Effect.map(Held.count(broker, queue), ({ delayed = 0, held = 0, ready }) =>
    ready === undefined ? undefined : ready + delayed + held
  )
