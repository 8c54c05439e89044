/**
 * The harness is the part of an adapter's tests that reads the broker directly and breaks things.
 *
 * An adapter's tests provide it next to the `Broker`, on the same broker. The harness must not use the adapter's own
 * consumer: a dead letter counts only when it was seen in the broker.
 *
 * MUST, for every harness:
 *
 * 1. `uniqueQueue` returns the name of a queue that exists, is empty, and has no other user. `<queue>.dlq` must be a valid
 * name as well. Nothing else about the name matters to the cases. If only some queues keep the order of keys, the queue for the base
 * `keys` does.
 * 2. `publishRaw` publishes as a foreign producer does, with the broker's own client and without Requeue's metadata. If the
 * producer sets the time of publication on this broker, `publishRaw` sets it.
 * 3. `deadLetters` returns every waiting message of the queue with this name, oldest first, with its metadata. It removes
 * none: a second call returns the same.
 * 4. `pending` returns the broker's own numbers; `undefined` for those that `capabilities.counts` declares as unknown.
 * 5. `cutConnections` breaks every connection of the adapter as a network does, with no closing handshake.
 * 6. `restart` stops the broker, starts it again with the same storage, and ends when it can be reached.
 * 7. `another` opens a second broker on the same queues as another process would, with separate connections and memory. It
 * shares no object with the first; the scope closes it.
 * 8. `failNext` makes one call fail below the adapter: between its driver and the broker, or in the broker. Calls before
 * and after it pass, and so do those of other queues, if the connection does not break.
 * 9. `deleteQueue` deletes a queue as an operator does by mistake, with its messages and under its consumers. The adapter
 * must create it again, and continue.
 * 10. `foreignQueue` creates a queue of another kind than the adapter would choose, as another program does, and returns
 * its name. The adapter must reject it as `QueueMismatch`, with a remedy, or give its messages all their attempts.
 * 11. `transactions` begins transactions of the broker's database as a program does, without the adapter. `write` writes to a
 * table that is no queue, and `rows` reads what was committed.
 * 12. `crash` ends the process of the broker without any clean-up, as SIGKILL does, and starts it again with the same storage.
 * For a broker inside the program, that process is the program. The member is `undefined` if a crash may lose confirmed
 * messages, or if this harness cannot do it.
 * 13. `powerCut` does the same, and the storage loses all that was not synced. It fails if the storage is damaged.
 *
 * Before the first case, the suite rejects a harness that lacks a member or has one of another kind. While a case runs, it
 * checks that `another`, `crash` and `powerCut` return another broker, that `restart` has ended the connection (if deliveries end with it), that no
 * call is reported as failed before there was one, and that `pending` returns the numbers that `capabilities.counts`
 * promises.
 */
import type { Broker, Delivery, Message } from "@requeue/core"
import * as Context from "effect/Context"
import type * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"

/**
 * A call of an adapter to its broker:
 *
 * - `publish`: the call stores a message or a copy.
 * - `settle`: the call removes a delivered message, or returns it to the queue.
 * - `extend`: the call renews a lease.
 * - `receive`: the call requests messages. If the broker pushes them, this is the call that grants credit, such as NSQ's
 *   `RDY`.
 */
export type Operation = "publish" | "settle" | "extend" | "receive"

/** All operations. */
export const operations: ReadonlyArray<Operation> = ["publish", "settle", "extend", "receive"]

/**
 * How a call fails:
 *
 * - `refused`: the broker answers that it is too busy, and nothing happens: no message is stored, and a delivery and its
 *   lease stay as they are. Any other refusal may be permanent, and has another reason than `Throttled`.
 * - `lostRequest`: nothing happens, and no answer arrives.
 * - `lostAnswer`: the broker does what was asked, and its answer never arrives.
 * - `lateAnswer`: the broker does what was asked, and its answer arrives when the scope closes. No delivery and no
 *   settlement waits for that.
 *
 * If no answer arrives, the connection may break.
 */
export type Failure = Loss | "lateAnswer"

/** A failure of a call that never succeeds later, unlike `lateAnswer`. */
export type Loss = "refused" | "lostRequest" | "lostAnswer"

/** All losses. */
export const losses: ReadonlyArray<Loss> = ["refused", "lostRequest", "lostAnswer"]

/** All failures. */
export const failures: ReadonlyArray<Failure> = [...losses, "lateAnswer"]

/** Makes a call fail; `undefined` if the harness cannot make this call fail in this way. */
export type FailNext = (
  operation: Operation,
  failure: Failure,
  queue: string
) => Effect.Effect<() => boolean, unknown, Scope.Scope> | undefined

/** A transaction of the broker's database. */
export interface Transaction {
  /** The transaction as a program passes it to `within`. */
  readonly value: unknown
  /** Writes a row. */
  readonly write: (row: string) => Effect.Effect<void, unknown>
  readonly commit: Effect.Effect<void, unknown>
  readonly rollback: Effect.Effect<void, unknown>
}

/** Transactions of the broker's database, and their effects. */
export interface Transactions {
  /** Begins a transaction. The end of the scope rolls it back if it is still open. */
  readonly begin: Effect.Effect<Transaction, unknown, Scope.Scope>
  /** The rows of all transactions that were committed. */
  readonly rows: Effect.Effect<ReadonlyArray<string>, unknown>
}

/** The abilities of a harness. The MUSTs of this module describe each of them. */
export interface Service {
  /** The broker under test, with its version, for example `rabbitmq 4.3 quorum`. */
  readonly name: string
  /** Creates a queue for one case. Its name contains `base`, if the broker's rules for names allow it. */
  readonly uniqueQueue: (base: string) => Effect.Effect<string, unknown>
  /** Publishes as a producer without Requeue does. */
  readonly publishRaw: (queue: string, body: Uint8Array, headers: Message.Headers) => Effect.Effect<void, unknown>
  /** Returns the messages in a queue; `queue` is the dead-letter queue's own name. */
  readonly deadLetters: (queue: string) => Effect.Effect<ReadonlyArray<Delivery.Delivery>, unknown>
  /** Returns the broker's own numbers of a queue. */
  readonly pending: (queue: string) => Effect.Effect<Broker.Counts, unknown>
  /** Breaks the adapter's connections; `undefined` if this harness cannot do it. */
  readonly cutConnections: Effect.Effect<void, unknown> | undefined
  /** Restarts the broker; `undefined` if this harness cannot do it. */
  readonly restart: Effect.Effect<void, unknown> | undefined
  /**
   * Ends the broker's process without clean-up, starts it again, and returns the broker of a new process; `undefined` if a crash
   * may lose confirmed messages, or if this harness cannot do it.
   */
  readonly crash: Effect.Effect<Broker.Service, unknown, Scope.Scope> | undefined
  /** As `crash`, and the storage loses what was not synced; `undefined` if this harness cannot do it. */
  readonly powerCut: Effect.Effect<Broker.Service, unknown, Scope.Scope> | undefined
  /** Opens a second broker; `undefined` if the broker lives in one process only, or if this harness cannot do it. */
  readonly another: Effect.Effect<Broker.Service, unknown, Scope.Scope> | undefined
  /**
   * Makes the next call of this kind on this queue or its dead letters fail, unless the scope closes first. The returned
   * function reports whether the call has failed. It is `undefined` for a call that this harness cannot make fail. The
   * member itself is `undefined` if the harness cannot make any call fail.
   */
  readonly failNext: FailNext | undefined
  /** Deletes a queue by its name; `undefined` if this harness cannot do it. */
  readonly deleteQueue: ((queue: string) => Effect.Effect<void, unknown>) | undefined
  /** Creates a queue of another kind; `undefined` if the broker has one kind only, or if this harness cannot do it. */
  readonly foreignQueue: ((base: string) => Effect.Effect<string, unknown>) | undefined
  /** Begins transactions; `undefined` if the broker has none, or this harness cannot. */
  readonly transactions: Transactions | undefined
  /** Milliseconds by which a due message may be late, beyond `capabilities.delayResolution`. */
  readonly lateness: number
  /** Milliseconds that may pass until `pending` and `deadLetters` show a change. */
  readonly settleTime: number
}

/** The harness that the cases run with. */
export class Harness extends Context.Service<Harness, Service>()("@requeue/conformance/Harness") {}
