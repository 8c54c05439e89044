/**
 * What only a test may do: look behind the broker's port, and break things.
 *
 * An adapter's tests provide it next to the `Broker`, on the same broker. It must not go through the adapter's own
 * consumer: a dead letter counts only when it has been seen in the broker.
 *
 * MUST, for every harness:
 *
 * 1. `uniqueQueue` answers a queue that is empty, exists, and is used by nobody else. `<queue>.dlq` must be a valid name
 *    as well. Nothing else about the name matters to the cases.
 * 2. `publishRaw` publishes as a foreign producer does, with the broker's own client and without Requeue's metadata.
 * 3. `deadLetters` answers every message that waits in the queue of this name, oldest first, with the metadata that it
 *    carries. It may be asked again and again and answers the same.
 * 4. `pending` answers the broker's own numbers; `undefined` where `capabilities.counts` says that it cannot tell.
 * 5. `cutConnections` breaks every connection of the adapter as a network does, with no closing handshake.
 * 6. `restart` stops the broker and starts it again with the same storage, and ends when it can be reached.
 */
import type { Broker, Delivery, Message } from "@requeue/core"
import * as Context from "effect/Context"
import type * as Effect from "effect/Effect"

export interface Service {
  /** As the ledger shows it, for example `rabbitmq 4.3 quorum`. */
  readonly name: string
  /** A queue of this case's own whose name contains `base` where names may. */
  readonly uniqueQueue: (base: string) => Effect.Effect<string, unknown>
  readonly publishRaw: (queue: string, body: Uint8Array, headers: Message.Headers) => Effect.Effect<void, unknown>
  /** `queue` is the dead-letter queue's own name. */
  readonly deadLetters: (queue: string) => Effect.Effect<ReadonlyArray<Delivery.Delivery>, unknown>
  readonly pending: (queue: string) => Effect.Effect<Broker.Counts, unknown>
  /** `undefined` when this harness cannot. */
  readonly cutConnections: Effect.Effect<void, unknown> | undefined
  /** `undefined` when this harness cannot. */
  readonly restart: Effect.Effect<void, unknown> | undefined
  /** Milliseconds by which a due message may be late, beyond `capabilities.delayResolution`. */
  readonly lateness: number
  /** Milliseconds after which `pending` and `deadLetters` show what happened. */
  readonly settleTime: number
}

/** The harness that the cases run with. */
export class Harness extends Context.Service<Harness, Service>()("@requeue/conformance/Harness") {}
