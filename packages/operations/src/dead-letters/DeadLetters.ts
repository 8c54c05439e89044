/**
 * Dead letters: count them, list them with their causes, send them back to work, or remove them.
 *
 * All of it works on any broker, because a dead-letter queue is a queue like any other, and the cause of a dead letter
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
 * The dead letters in one queue. If parts of the broker do not answer, each call works on the others, and a log warning
 * names those that are left out.
 */
export interface DeadLetters {
  /** The dead-letter queue's name. */
  readonly queue: string
  /**
   * The number of dead letters; `undefined` if the broker cannot count. Letters that another reader holds for longer than a
   * second are included if the broker counts them.
   */
  readonly count: Effect.Effect<number | undefined, BrokerError.BrokerError>
  /** Whether the broker has the queue; `true` also if the broker does not report missing queues. Creates no queue. */
  readonly exists: Effect.Effect<boolean, BrokerError.BrokerError>
  /**
   * The errors of the parts of the broker that do not answer. The other calls leave out the letters
   * there. Empty if all parts answer.
   */
  readonly missing: Effect.Effect<ReadonlyArray<BrokerError.BrokerError>, BrokerError.BrokerError>
  /**
   * Reads dead letters page by page, oldest first if the broker has an order, and removes none. When the scope closes, all
   * return to the queue. Until then, other readers do not get them. Unless `capabilities.uncountedBrowse` is true, it counts
   * as a delivery of each.
   *
   * If the broker shows only the first letters of each group, as SQS does for FIFO queues, it reads those, and a log warning
   * has the number of hidden ones.
   */
  readonly read: (options?: ReadOptions) => Effect.Effect<Letters, BrokerError.BrokerError, Scope.Scope>
  /** Lists up to `limit` dead letters (default: 100), in the way of {@link DeadLetters.read}. */
  readonly list: (options?: ListOptions) => Effect.Effect<ReadonlyArray<DeadLetter>, BrokerError.BrokerError>
  /**
   * Groups up to `limit` dead letters (default: 1,000), oldest first, by cause: by queue of origin, reason, error name and
   * error pattern. The most frequent cause comes first. `browsed` and `total` count the letters that were grouped, and all of them.
   */
  readonly group: (options?: ListOptions) => Effect.Effect<Groups.Groups, BrokerError.BrokerError>
  /**
   * Sends dead letters back to work: each is published and confirmed, and only then removed from this queue. Its attempts
   * start again at 1. Dead letters that the options pass over stay in this queue.
   *
   * Letters that are passed over are held until the end, so the broker shows those after them: up to 100,000.
   *
   * A letter whose copy the broker refuses stays as well, and the others go on. The redrive fails if the first 100 are refused
   * and none is accepted, if the broker is away for a minute, and if the broker counts letters but delivers none for
   * 10 seconds. If the broker cannot count, the redrive ends after 3 seconds without a letter.
   *
   * @throws RangeError when an option is unknown, of another kind or out of its range, or `to` is this queue itself
   */
  readonly redrive: (options?: RedriveOptions) => Effect.Effect<Report, BrokerError.BrokerError | DeadLettersStopped>
  /**
   * Moves dead letters to a queue without consumers. Each is published there unchanged,
   * with all its metadata, and confirmed, and only then removed from this queue. They are dead letters of that queue:
   * redrive them from there, or park them back with `to`. `redriven` of the report counts those that were moved.
   *
   * It works, ends and fails as {@link DeadLetters.redrive} does without stages.
   *
   * @throws RangeError when an option is unknown, of another kind or out of its range, or `to` is this queue itself
   */
  readonly park: (options?: ParkOptions) => Effect.Effect<Report, BrokerError.BrokerError | DeadLettersStopped>
  /**
   * Publishes an edited copy of a dead letter from {@link DeadLetters.list}, and waits for its outcome. The
   * copy has the id and the history of the letter, and counts as redriven. The original stays here until the copy has
   * succeeded, by the broker's counts, and is removed only then.
   *
   * @throws RangeError when an option is unknown or of another kind, the copy equals the letter, or its queue is unknown: then
   */
  readonly edit: (
    letter: DeadLetter,
    options: EditOptions
  ) => Effect.Effect<EditReport, BrokerError.BrokerError | AuditFailed>
  /**
   * Removes dead letters for good, all or those that `filter` selects, and returns their number. With
   * a filter, it goes through the queue as {@link DeadLetters.redrive} does. It fails if the broker hides letters after others
   * of their group that stay; the visible ones are removed by then.
   *
   * @throws RangeError when an option is unknown or of another kind, or unless one of `all` and `filter` is given
   */
  readonly purge: (options: PurgeOptions) => Effect.Effect<number, BrokerError.BrokerError | DeadLettersStopped>
}

/**
 * The dead letters in a queue, for example `orders.dlq`.
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
 * The dead letters in a queue that the policies of these queues name. If it has letters of another queue as well, `redrive`,
 * `park`, `edit` and `purge` refuse it without `origin` or `force`.
 */
export const foundFor = (
  queue: string,
  queues: ReadonlyArray<string>
): Effect.Effect<DeadLetters, never, Broker.Broker> =>
  Effect.map(Broker.Broker, (broker) => ofBroker(broker, queue, queues))

/** Options of {@link of}. */
export interface OfOptions {
  /**
   * The retry policy of the queue's consumers, for this call only. Default: those known here, else the default policy.
   */
  readonly retry?: RetryPolicy.Options | RetryPolicy.RetryPolicy | undefined
}

/** All options of {@link of} and their kinds. */
export const ofKinds: OptionNames.Of<OfOptions> = { retry: OptionKind.object("a retry policy") }

/**
 * The dead letters of a queue, for example of `orders`: those in each dead-letter queue that the queue's policy names. It
 * knows the policies of this program's consumers and of its config file. A result has all letters of its dead-letter queue. Calls
 * that change a queue with letters of another queue as well need `origin` or `force`.
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
  /** A call whose functions run in its async context, with a copy of its options. */
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
  /** One that moves or removes letters. */
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
