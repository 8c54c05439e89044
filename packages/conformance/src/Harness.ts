/**
 * The part of an adapter's tests that looks behind the broker's port and breaks things.
 *
 * An adapter's tests provide it next to the `Broker`, on the same broker. It must not go through the adapter's own
 * consumer: a dead letter counts only when it was seen in the broker.
 *
 * MUST, for every harness:
 *
 * 1. `uniqueQueue` answers the name of a queue that exists, is empty, and is used by nobody else. `<queue>.dlq` must be a
 *    valid name as well. Nothing else about the name matters to the cases.
 * 2. `publishRaw` publishes as a foreign producer does, with the broker's own client and without Requeue's metadata. Where
 *    it is the producer who says when a message was published, it says so.
 * 3. `deadLetters` answers every message that waits in the queue of this name, oldest first, with the metadata that it
 *    carries. It takes none away: asked again, it answers the same.
 * 4. `pending` answers the broker's own numbers; `undefined` where `capabilities.counts` says that it cannot tell.
 * 5. `cutConnections` breaks every connection of the adapter as a network does, with no closing handshake.
 * 6. `restart` stops the broker and starts it again with the same storage, and ends when it can be reached.
 * 7. `another` opens a second broker on the same queues as another process would: with connections and memory of its own.
 *    It shares no object with the first; the scope closes it.
 * 8. `failNext` lets one call fail below the adapter: between its driver and the broker, or in the broker. Calls before it
 *    and after it pass, and so do those of other queues, as long as the connection does not break.
 * 9. `deleteQueue` deletes a queue as an operator does by mistake, with its messages and under its consumers. The adapter
 *    must make it again, and go on.
 * 10. `foreignQueue` makes a queue as somebody else has made it, of another kind than the adapter would choose, and answers
 *    its name. The adapter must refuse it as `QueueMismatch`, with a remedy, or give its messages all their attempts.
 *
 * Before the first case, the suite refuses a harness that lacks a member or has one of another kind. While a case runs, it
 * sees that `another` is another broker, that `restart` has ended the connection (where deliveries end with it), that no
 * call is told as failed before there was one, and that `pending` tells the numbers that `capabilities.counts` promises.
 */
import type { Broker, Delivery, Message } from "@requeue/core"
import * as Context from "effect/Context"
import type * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"

/**
 * A call of an adapter to its broker:
 *
 * - `publish`: it stores a message or a copy.
 * - `settle`: it removes a delivered message, or gives it back.
 * - `extend`: it renews a lease.
 * - `receive`: it asks for messages. Where the broker pushes them, that is what allows it to: a credit, such as NSQ's `RDY`.
 */
export type Operation = "publish" | "settle" | "extend" | "receive"

/** All operations. */
export const operations: ReadonlyArray<Operation> = ["publish", "settle", "extend", "receive"]

/**
 * How a call fails:
 *
 * - `refused`: the broker says that it is too busy, and nothing happens: no message is stored, a delivery stays as it is, and
 *   so does its lease. Any other refusal may be for good, and has another reason than `Throttled`.
 * - `lostRequest`: nothing happens, and no answer comes.
 * - `lostAnswer`: the broker does it, and its answer never comes.
 * - `lateAnswer`: the broker does it, and its answer comes when the scope closes. No delivery and no settlement waits for
 *   that.
 *
 * Where no answer comes, the connection may break.
 */
export type Failure = Loss | "lateAnswer"

/** How a call fails that nobody can finish. */
export type Loss = "refused" | "lostRequest" | "lostAnswer"

/** All of them. */
export const losses: ReadonlyArray<Loss> = ["refused", "lostRequest", "lostAnswer"]

/** All failures. */
export const failures: ReadonlyArray<Failure> = [...losses, "lateAnswer"]

/** Lets a call fail; `undefined` where the harness cannot let this call fail in this way. */
export type FailNext = (
  operation: Operation,
  failure: Failure,
  queue: string
) => Effect.Effect<() => boolean, unknown, Scope.Scope> | undefined

/** The abilities of a harness; the module's MUSTs say what each does. */
export interface Service {
  /** The broker that is tested, with its version, for example `rabbitmq 4.3 quorum`. */
  readonly name: string
  /** Makes a queue for one case. Its name contains `base`, as far as the broker's rules for names allow. */
  readonly uniqueQueue: (base: string) => Effect.Effect<string, unknown>
  /** Publishes as a producer that knows nothing of Requeue. */
  readonly publishRaw: (queue: string, body: Uint8Array, headers: Message.Headers) => Effect.Effect<void, unknown>
  /** Answers the messages in a queue; `queue` is the dead-letter queue's own name. */
  readonly deadLetters: (queue: string) => Effect.Effect<ReadonlyArray<Delivery.Delivery>, unknown>
  /** Answers the broker's own numbers of a queue. */
  readonly pending: (queue: string) => Effect.Effect<Broker.Counts, unknown>
  /** Breaks the adapter's connections; `undefined` where this harness cannot. */
  readonly cutConnections: Effect.Effect<void, unknown> | undefined
  /** Restarts the broker; `undefined` where this harness cannot. */
  readonly restart: Effect.Effect<void, unknown> | undefined
  /** Opens a second broker; `undefined` where the broker lives in one process only, or this harness cannot. */
  readonly another: Effect.Effect<Broker.Service, unknown, Scope.Scope> | undefined
  /**
   * Lets the next call of this kind fail that concerns this queue or its dead letters, unless the scope closes first; the
   * answer says whether it has happened. It is `undefined` for a call, or altogether, where this harness cannot.
   */
  readonly failNext: FailNext | undefined
  /** Deletes a queue by its name; `undefined` where this harness cannot. */
  readonly deleteQueue: ((queue: string) => Effect.Effect<void, unknown>) | undefined
  /** Makes a queue of another kind; `undefined` where the broker has one kind only, or this harness cannot. */
  readonly foreignQueue: ((base: string) => Effect.Effect<string, unknown>) | undefined
  /** Milliseconds by which a due message may be late, beyond `capabilities.delayResolution`. */
  readonly lateness: number
  /** Milliseconds that may pass until `pending` and `deadLetters` show a change. */
  readonly settleTime: number
}

/** The harness that the cases run with. */
export class Harness extends Context.Service<Harness, Service>()("@requeue/conformance/Harness") {}
