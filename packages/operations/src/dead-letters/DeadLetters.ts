/**
 * Dead letters: count them, list them with their causes, send them back to work, or remove them.
 *
 * Every call works on any broker, because a dead-letter queue is a queue like any other, and the cause of a dead letter
 * travels in its metadata.
 */
import { Broker, type BrokerError, QueueDefinition, RetryPolicy } from "@requeue/core"
import { AsyncContext, KnownQueues, OptionKind, OptionNames } from "@requeue/core/port"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { AuditFailed } from "./internal/audit.ts"
import type { DeadLetter } from "./internal/deadLetter.ts"
import { edit, type EditOptions, type EditReport } from "./internal/edit.ts"
import * as Groups from "./internal/groups.ts"
import * as Held from "./internal/held.ts"
import * as Look from "./internal/look.ts"
import type { Letters } from "./internal/look.ts"
import * as Options from "./internal/options.ts"
import type { ListOptions, PurgeOptions, ReadOptions } from "./internal/options.ts"
import { tell } from "./internal/partial.ts"
import { purge } from "./internal/purge.ts"
import { park, type ParkOptions, type Options as RedriveOptions, redrive } from "./internal/redrive.ts"
import * as Role from "./internal/role.ts"
import type { DeadLettersStopped, Report } from "./internal/report.ts"

export { type Audit, AuditFailed } from "./internal/audit.ts"
export { CallbackFailed } from "./internal/callback.ts"
export type { DeadLetter } from "./internal/deadLetter.ts"
export type { EditOptions, EditOutcome, EditReport } from "./internal/edit.ts"
export {
  type Cause,
  causeOf,
  type Counter,
  type Group,
  group,
  type Groups,
  make as counter
} from "./internal/groups.ts"
export type { Letters } from "./internal/look.ts"
export type { ListOptions, PurgeOptions, ReadOptions, Selection } from "./internal/options.ts"
export type { Progress } from "./internal/reading.ts"
export { type Options as RedriveOptions, parkingQueue, type ParkOptions } from "./internal/redrive.ts"
export {
  DeadLettersStopped,
  type Outcome,
  type Report as RedriveReport,
  type Stage,
  type StoppedBy
} from "./internal/report.ts"
export type { FailedLetter } from "./internal/sweepStats.ts"
export { type Standard as StandardStages, standard as standardStages, waitFor } from "./internal/stages.ts"

/**
 * The calls on the dead letters in one queue. If parts of the broker do not answer, such as one nsqd of several, each call
 * works on the other parts, and a log warning names the parts that it left out.
 */
export interface DeadLetters {
  /** The dead-letter queue's name. */
  readonly queue: string
  /**
   * The number of dead letters; `undefined` if the broker cannot count. If the broker counts letters that another reader
   * has held for more than a second, they are included.
   */
  readonly count: Effect.Effect<number | undefined, BrokerError.BrokerError>
  /**
   * Whether the broker has the queue. The answer is `true` as well if the broker does not report missing queues. The call
   * creates no queue.
   */
  readonly exists: Effect.Effect<boolean, BrokerError.BrokerError>
  /**
   * One error for each part of the broker that does not answer; empty if all parts answer. The other calls leave out the
   * letters on these parts.
   */
  readonly missing: Effect.Effect<ReadonlyArray<BrokerError.BrokerError>, BrokerError.BrokerError>
  /**
   * Reads dead letters page by page, oldest first if the broker has an order, and removes none. When the scope closes, all
   * letters return to the queue. Until then, other readers do not get them. Unless `capabilities.uncountedBrowse` is true,
   * the broker counts reading as a delivery of each letter.
   *
   * If the broker shows only the first letters of each message group, as SQS does for FIFO queues, the call reads only
   * these. A log warning then has the number of hidden letters.
   */
  readonly read: (options?: ReadOptions) => Effect.Effect<Letters, BrokerError.BrokerError, Scope.Scope>
  /** Lists up to `limit` dead letters (default: 100). It affects the queue as {@link DeadLetters.read} does. */
  readonly list: (options?: ListOptions) => Effect.Effect<ReadonlyArray<DeadLetter>, BrokerError.BrokerError>
  /**
   * Groups dead letters by cause: by queue of origin, reason, error name and error pattern. It groups up to `limit` letters
   * (default: 1,000), oldest first. The most frequent cause comes first. In the result, `browsed` is the number of letters
   * that were read, and `total` the number in the queue.
   */
  readonly group: (options?: ListOptions) => Effect.Effect<Groups.Groups, BrokerError.BrokerError>
  /**
   * Sends dead letters back to work. A copy of each letter is published and confirmed, and only then the letter is removed
   * from this queue. The attempts of the copy start again at 1. Letters that the options do not select stay in this queue.
   *
   * The redrive holds letters that it does not select until it ends, because the broker then shows the letters after them.
   * It holds at most 100,000.
   *
   * A letter whose copy the broker refuses stays as well, and the redrive goes on with the others. The redrive fails if the
   * broker refuses the first 100 letters, if the broker is away for a minute, and if the broker counts letters but delivers
   * none for 10 seconds. If the broker cannot count, the redrive ends after 3 seconds without a letter.
   *
   * @throws RangeError when an option is unknown, of another kind or out of its range, or `to` is this queue itself
   */
  readonly redrive: (options?: RedriveOptions) => Effect.Effect<Report, BrokerError.BrokerError | DeadLettersStopped>
  /**
   * Moves dead letters to a parking queue, which has no consumers. Each letter is published there unchanged, with all its
   * metadata, and confirmed, and only then removed from this queue. From the parking queue you can redrive the letters, or
   * move them back by `park` with the option `to`. In the report, `redriven` is the number of moved letters.
   *
   * The call ends and fails as {@link DeadLetters.redrive} without stages does.
   *
   * @throws RangeError when an option is unknown, of another kind or out of its range, or `to` is this queue itself
   */
  readonly park: (options?: ParkOptions) => Effect.Effect<Report, BrokerError.BrokerError | DeadLettersStopped>
  /**
   * Publishes an edited copy of a dead letter from {@link DeadLetters.list}, and waits for its outcome. The copy has the id
   * and the history of the letter, and counts as redriven. The original stays in this queue, and is removed only after the
   * broker's counts show that the copy has succeeded.
   *
   * @throws RangeError when an option is unknown or of another kind, the copy equals the letter, or the letter's queue of
   * origin is unknown and `to` is missing
   */
  readonly edit: (
    letter: DeadLetter,
    options: EditOptions
  ) => Effect.Effect<EditReport, BrokerError.BrokerError | AuditFailed>
  /**
   * Removes dead letters for good, either all or those that `filter` selects, and returns the number of removed letters.
   * With a filter, it goes through the queue as {@link DeadLetters.redrive} does. It fails if letters that stay hide later
   * letters of their message group; by then, it has removed the visible letters.
   *
   * @throws RangeError when an option is unknown or of another kind, or unless one of `all` and `filter` is given
   */
  readonly purge: (options: PurgeOptions) => Effect.Effect<number, BrokerError.BrokerError | DeadLettersStopped>
}

/**
 * Returns the calls on the dead letters in a queue, for example `orders.dlq`.
 *
 * @example
 * ```ts
 * import { MemoryBroker } from "@requeue/adapter-memory"
 * import { DeadLetters } from "@requeue/operations"
 * import { Effect } from "effect"
 *
 * const program = Effect.gen(function* () {
 *   const letters = yield* DeadLetters.make("orders.dlq")
 *   return yield* letters.redrive({ limit: 10, filter: ({ body }) => body.length < 1000 })
 * })
 * const failed = Effect.map(Effect.flip(program), ({ message }) => message)
 * // No consumer has made the queue yet.
 * await Effect.runPromise(Effect.provide(failed, MemoryBroker.layer())) // => "memory: redrive on queue orders.dlq: QueueMissing: there is no such queue. Use the dead-letter queue's name on the broker, such as orders.dlq"
 * ```
 */
export const make = (queue: string): Effect.Effect<DeadLetters, never, Broker.Broker> =>
  Effect.map(Broker.Broker, (broker) => ofBroker(broker, queue))

/**
 * Returns the calls on a dead-letter queue that the policies of the given queues name. If it has letters of another queue
 * as well, `redrive`, `park`, `edit` and `purge` require `origin` or `force`.
 */
export const foundFor = (
  queue: string,
  queues: ReadonlyArray<string>
): Effect.Effect<DeadLetters, never, Broker.Broker> =>
  Effect.map(Broker.Broker, (broker) => ofBroker(broker, queue, queues))

/** Options of {@link of}. */
export interface OfOptions {
  /**
   * The retry policy of the queue's consumers, for this call only. Default: the policy of this program's consumers or of
   * its config file, else the default policy.
   */
  readonly retry?: RetryPolicy.Options | RetryPolicy.RetryPolicy | undefined
}

/** The names and kinds of all options of {@link of}. */
export const ofKinds: OptionNames.Of<OfOptions> = { retry: OptionKind.object("a retry policy") }

/**
 * Returns the calls on each dead-letter queue that the policy of a queue, for example `orders`, names. It finds the policy
 * among this program's consumers and in its config file. If a dead-letter queue has letters of another queue as well, they
 * are included, and calls that change the dead-letter queue require `origin` or `force`.
 *
 * @example
 * ```ts
 * import { MemoryBroker } from "@requeue/adapter-memory"
 * import { DeadLetters } from "@requeue/operations"
 * import { Effect } from "effect"
 *
 * const names = Effect.map(DeadLetters.of("orders"), (all) => all.map(({ queue }) => queue))
 * await Effect.runPromise(Effect.provide(names, MemoryBroker.layer())) // => ["orders.dlq"]
 * ```
 */
export const of = (
  queue: QueueDefinition.Input<unknown, never>,
  options: OfOptions = {}
): Effect.Effect<ReadonlyArray<DeadLetters>, never, Broker.Broker> =>
  OptionNames.orDie(OptionNames.refusal("DeadLetters.of", options, ofKinds, queue), () =>
    Effect.map(Broker.Broker, (broker) => {
      const { name } = QueueDefinition.from(queue)
      const found =
        options.retry === undefined
          ? KnownQueues.deadLetterQueues(broker, name)
          : RetryPolicy.deadLetterQueues(RetryPolicy.from(options.retry), name)
      return found.map((dead) => ofBroker(broker, dead, [name]))
    })
  )

type IsOrigin = (origin: string) => Effect.Effect<boolean, BrokerError.BrokerError>

const ofBroker = (broker: Broker.Service, queue: string, found?: ReadonlyArray<string>): DeadLetters => {
  const refused = Options.refusals(queue)
  /** Makes a call whose functions run in the async context of its caller, with a copy of its options. */
  const calling = <O extends object | undefined, A, E, R>(
    operation: string,
    refusal: RangeError | undefined,
    options: O,
    call: (watched: Broker.Service, given: O) => Effect.Effect<A, E, R>
  ) =>
    OptionNames.orDie(refusal, () => {
      const own = options && { ...options }
      return tell(broker, queue, operation, (watched) => call(watched, AsyncContext.bound(own)))
    })
  /** Makes a call that moves or removes letters. */
  const acting = <O extends Options.Acting | undefined, A, E, R>(
    operation: string,
    refusal: RangeError | undefined,
    options: O,
    call: (watched: Broker.Service, given: O, isOrigin: IsOrigin) => Effect.Effect<A, E, R>,
    isOfOrigin = options?.origin !== undefined
  ) => {
    const acts = { operation, of: found, isOfOrigin }
    return calling(operation, refusal, options, (watched, given) => {
      const isOrigin: IsOrigin = (origin) =>
        origin === given?.origin || found?.includes(origin) === true
          ? Effect.succeed(true)
          : KnownQueues.isOrigin(broker, queue, origin)
      const acted = call(watched, Options.ofOrigin(given), isOrigin)
      return given?.force === queue ? acted : Effect.andThen(Role.check(broker, watched, queue, acts), acted)
    })
  }
  return {
    queue,
    count: tell(broker, queue, "count", (watched) => count(watched, queue)),
    exists: Effect.map(broker.admin.counts(queue), ({ isMissing = false }) => !isMissing),
    missing: Effect.map(broker.admin.counts(queue), ({ missing = [] }) => missing),
    read: (options) =>
      calling("read", refused.read(options), options, (watched, given) => Look.read(watched, queue, given)),
    list: (options) =>
      calling("list", refused.list(options), options, (watched, given) => Look.list(watched, queue, given)),
    group: (options) =>
      calling("group", refused.group(options), options, (watched, given) => Look.group(watched, queue, given)),
    redrive: (options) =>
      acting("redrive", refused.redrive(options), options, (watched, given, isOrigin) =>
        redrive(watched, queue, given, isOrigin)
      ),
    park: (options) => acting("park", refused.park(options), options, (watched, given) => park(watched, queue, given)),
    edit: (letter, options) =>
      acting(
        "edit",
        refused.edit(letter, options),
        options,
        (watched, given, isOrigin) => edit(watched, queue, letter, given, isOrigin),
        // The origin of the chosen letter.
        found?.some((name) => name === letter?.origin?.queue)
      ),
    purge: (options) =>
      acting("purge", refused.purge(options), options, (watched, given) => purge(watched, queue, given))
  }
}

const count = (broker: Broker.Service, queue: string): Effect.Effect<number | undefined, BrokerError.BrokerError> =>
  Effect.map(Held.count(broker, queue), ({ delayed = 0, held = 0, ready }) =>
    ready === undefined ? undefined : ready + delayed + held
  )
