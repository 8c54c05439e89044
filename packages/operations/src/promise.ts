/**
 * Operations for programs without Effect: the dead letters and the delayed messages of a connection of `connect`.
 *
 * Every call has the same options, result and errors as the call of the same name with Effect. It rejects where the call
 * with Effect fails.
 */
import type { Broker, BrokerError, QueueDefinition } from "@requeue/core"
import { OptionKind, OptionNames } from "@requeue/core/port"
import { ConnectionClosed, type Requeue } from "@requeue/core/promise"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Scope from "effect/Scope"
import * as DeadLetters from "./dead-letters/DeadLetters.ts"
import * as Options from "./dead-letters/internal/options.ts"
import * as DelayedMessages from "./delayed/DelayedMessages.ts"
import { promised } from "./internal/promised.ts"

export {
  AuditFailed,
  CallbackFailed,
  type DeadLetter,
  DeadLettersStopped,
  type FailedLetter,
  type Group,
  type Groups,
  type ParkOptions,
  type PurgeOptions,
  type RedriveOptions,
  type RedriveReport
} from "./dead-letters/DeadLetters.ts"
export type { DelayedMessage } from "./delayed/DelayedMessages.ts"

// Written out: editors show no docstrings of a derived type.

/** The calls on the dead letters in one queue. `DeadLetters` describes them in full. */
export interface DeadLetterQueue {
  /** The dead-letter queue's name. */
  readonly queue: string
  /** Returns the number of letters; `undefined` if the broker cannot count. */
  readonly count: () => Promise<number | undefined>
  /**
   * Returns whether the broker has the queue. It returns `true` as well if the broker does not report missing queues.
   */
  readonly exists: () => Promise<boolean>
  /**
   * Returns one error for each part of the broker that does not answer. The other calls leave out the letters on these
   * parts.
   */
  readonly missing: () => Promise<ReadonlyArray<BrokerError.BrokerError>>
  /**
   * Reads dead letters one after the other, and removes none: `for await (const letter of dead.read())`. When the loop
   * ends, also by `break` or an error, all letters return to the queue. If the connection is closed, the letters return as
   * well, and the loop fails with `ConnectionClosed`.
   */
  readonly read: (options?: DeadLetters.ReadOptions) => AsyncIterable<DeadLetters.DeadLetter>
  /** Returns letters with their bodies, headers, errors and histories, and removes none. */
  readonly list: (options?: DeadLetters.ListOptions) => Promise<ReadonlyArray<DeadLetters.DeadLetter>>
  /** Groups letters by cause: by queue of origin, reason, error and the pattern of its message. */
  readonly group: (options?: DeadLetters.ListOptions) => Promise<DeadLetters.Groups>
  /**
   * Sends letters back to the queues that they came from, or to another queue; their attempts start at 1 again. With
   * `dryRun`, the call only reports what it would do.
   */
  readonly redrive: (options?: DeadLetters.RedriveOptions) => Promise<DeadLetters.RedriveReport>
  /** Moves letters unchanged to a queue without consumers. */
  readonly park: (options?: DeadLetters.ParkOptions) => Promise<DeadLetters.RedriveReport>
  /** Publishes an edited copy of a letter from `list`, and removes the original once the copy has succeeded. */
  readonly edit: (letter: DeadLetters.DeadLetter, options: DeadLetters.EditOptions) => Promise<DeadLetters.EditReport>
  /**
   * Removes dead letters for good: those that `filter` selects, or all with `{ all: true }`. Resolves with the number of
   * removed letters.
   */
  readonly purge: (options: DeadLetters.PurgeOptions) => Promise<number>
}

/**
 * The calls on the delayed messages of one queue. Each call rejects with `Unsupported` if the broker cannot show delayed
 * messages.
 */
export interface DelayedQueue {
  /** The queue's name. */
  readonly queue: string
  /** Lists the messages that `filter` selects, the soonest due first. */
  readonly list: (options?: DelayedMessages.ListOptions) => Promise<DelayedMessages.Listing>
  /** Counts the messages that `filter` selects. In the result, `selected` is their number. */
  readonly count: (options?: DelayedMessages.CountOptions) => Promise<Omit<DelayedMessages.Listing, "messages">>
  /** Removes messages for good: those that `filter` selects, or all with `{ all: true }`. */
  readonly purge: (options: DelayedMessages.PurgeOptions) => Promise<DelayedMessages.Purged>
}

/**
 * Returns the calls on the dead letters in a dead-letter queue. Pass the dead-letter queue's own name, such as
 * `orders.dlq`.
 *
 * @throws RangeError when the queue is not a text
 *
 * @example
 * ```ts
 * import { connect } from "@requeue/core/promise"
 * import { deadLetters } from "@requeue/operations/promise"
 *
 * await using requeue = await connect("memory:")
 * await requeue.consume("orders", {}, async () => {}) // creates orders.dlq where it is missing
 * await deadLetters(requeue, "orders.dlq").count() // => 0
 * ```
 */
export const deadLetters = (requeue: Requeue, queue: string): DeadLetterQueue => {
  OptionNames.orThrow(OptionNames.argument("deadLetters", "queue", queue, OptionKind.text))
  return deadLetterQueue(requeue, queue, DeadLetters.make(queue))
}

/**
 * Returns the calls on each dead-letter queue that the policy of a queue, such as `orders`, names. It finds the policy
 * among this connection's consumers and in its config file. If the policy is in neither place, pass `retry`, which applies
 * to this call only; its default is the default policy. If a dead-letter queue has letters of another queue as well, calls
 * that change it require `origin` or `force`.
 *
 * Rejects with RangeError for an option that is unknown or of another kind.
 */
export const deadLettersOf = async (
  requeue: Requeue,
  queue: QueueDefinition.Input<unknown, never>,
  options?: DeadLetters.OfOptions
): Promise<ReadonlyArray<DeadLetterQueue>> => {
  const found = await requeue.run(DeadLetters.of(queue, options))
  return found.map((letters) => deadLetterQueue(requeue, letters.queue, Effect.succeed(letters)))
}

/**
 * Returns the calls on the delayed messages of a queue. The option `retry` is the retry policy of the queue's consumers,
 * because some brokers keep the messages of each delay in a different place.
 *
 * @throws RangeError when the queue is not a text, or an option is unknown
 */
export const delayedMessages = (requeue: Requeue, queue: string, options?: DelayedMessages.Options): DelayedQueue => {
  OptionNames.orThrow(OptionNames.argument("delayedMessages", "queue", queue, OptionKind.text))
  const make = DelayedMessages.make(queue, options)
  return { queue, ...promised(requeue, make, ["list", "count", "purge"], DelayedMessages.refusals(queue)) }
}

const calls = ["count", "exists", "missing", "list", "group", "redrive", "park", "edit", "purge"] as const

const deadLetterQueue = (
  requeue: Requeue,
  queue: string,
  make: Effect.Effect<DeadLetters.DeadLetters, never, Broker.Broker>
): DeadLetterQueue => {
  const refusals = Options.refusals(queue)
  return {
    queue,
    ...promised(requeue, make, calls, refusals),
    read: (options) => {
      OptionNames.orThrow(refusals.read(options))
      // It begins later; the caller may have changed them by then.
      const own = options && { ...options }
      return reading(
        requeue,
        Effect.flatMap(make, ({ read }) => read(own))
      )
    }
  }
}

/**
 * Reads letters. Reading begins when the result is iterated; all letters return to the queue when the iteration ends.
 */
const reading = (
  { close, run }: Requeue,
  read: Effect.Effect<DeadLetters.Letters, unknown, Broker.Broker | Scope.Scope>
): AsyncIterable<DeadLetters.DeadLetter> => ({
  async *[Symbol.asyncIterator]() {
    const scope = await run(Effect.flatMap(Effect.scope, (connection) => Scope.fork(connection)))
    try {
      const { next } = await run(Scope.provide(read, scope))
      for (let page = await run(next); page !== undefined; page = await run(next)) yield* page
    } finally {
      await run(Effect.uninterruptible(Scope.close(scope, Exit.void))).catch((error: unknown) => {
        // Waits for a closing connection to return them.
        if (error instanceof ConnectionClosed) return close()
        throw error
      })
    }
  }
})
