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
 * 2. `publishRaw` publishes as a foreign producer does, with the broker's own client and without Requeue's metadata.
 * 3. `deadLetters` answers every message that waits in the queue of this name, oldest first, with the metadata that it
 *    carries. It takes none away: asked again, it answers the same.
 * 4. `pending` answers the broker's own numbers; `undefined` where `capabilities.counts` says that it cannot tell.
 * 5. `cutConnections` breaks every connection of the adapter as a network does, with no closing handshake.
 * 6. `restart` stops the broker and starts it again with the same storage, and ends when it can be reached.
 */
import type { Broker, Delivery, Message } from "@requeue/core"
import * as Context from "effect/Context"
import type * as Effect from "effect/Effect"

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
  /** Milliseconds by which a due message may be late, beyond `capabilities.delayResolution`. */
  readonly lateness: number
  /** Milliseconds that may pass until `pending` and `deadLetters` show a change. */
  readonly settleTime: number
}

/** The harness that the cases run with. */
export class Harness extends Context.Service<Harness, Service>()("@requeue/conformance/Harness") {}
