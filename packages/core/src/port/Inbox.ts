/**
 * The inbox of a database: which messages of other brokers its transactions have done. It makes the effects of a handler happen once
 * although its broker can deliver a message again.
 */
import type * as Effect from "effect/Effect"
import type { BrokerError } from "./BrokerError.ts"

/** The queue of a store that is its outbox. */
export const outbox = "requeue.outbox"

/** Returns the outbox of the brokers with a namespace in the store. Default: of those without one. */
export const outboxOf = (namespace?: string): string => (namespace === undefined ? outbox : `${outbox}-${namespace}`)

/** The inbox of a broker with transactions. A message is named by its queue and its id. */
export interface Inbox {
  /**
   * Records messages in a transaction, and returns the ids that this transaction or a committed one has recorded before. It waits
   * for other open transactions that record one of them. It fails as `Subscription.ackWithin` does.
   */
  readonly record: (
    transaction: unknown,
    queue: string,
    ids: ReadonlyArray<string>
  ) => Effect.Effect<ReadonlyArray<string>, BrokerError>
  /** Returns the ids that a committed transaction has recorded. */
  readonly recorded: (queue: string, ids: ReadonlyArray<string>) => Effect.Effect<ReadonlyArray<string>, BrokerError>
  /** Forgets up to `limit` messages that were recorded more than `age` milliseconds ago, and returns their number. */
  readonly prune: (age: number, limit: number) => Effect.Effect<number, BrokerError>
}
