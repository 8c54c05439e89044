/**
 * Controls of a memory broker beyond the port, for tests and the conformance harness.
 *
 * When to use: get one from `MemoryBroker.makeControlled` to inspect queues, to publish as a foreign producer, or to cut the
 * connection.
 */
import type { BrokerError, Delivery, Message } from "@requeue/core/port"
import type * as Effect from "effect/Effect"

/** The messages of a queue. Ready and delayed messages appear as their next consumer will receive them. */
export interface Snapshot {
  /** The ready messages, in the order of delivery. */
  readonly ready: ReadonlyArray<Delivery.Delivery>
  /** The delayed messages, in the order in which they are due; `dueIn` is in milliseconds from now. */
  readonly delayed: ReadonlyArray<{ readonly delivery: Delivery.Delivery; readonly dueIn: number }>
  /** The messages in flight, in the order in which they were delivered. */
  readonly inFlight: ReadonlyArray<Delivery.Delivery>
  /** The number of the queue's consumers. */
  readonly consumers: number
}

/** The controls of one broker. */
export interface Control {
  /** Publishes a message without metadata, as a foreign producer does. The broker gives it an id and a time. */
  readonly publishRaw: (
    queue: string,
    body: Uint8Array,
    headers?: Message.Headers
  ) => Effect.Effect<void, BrokerError.BrokerError>
  /**
   * Cuts all connections and reopens them. Unsettled messages return to their queues, `onReconnect` of every subscription
   * is called, and deliveries resume with the last credit.
   */
  readonly cut: Effect.Effect<void>
  /**
   * Imitates a restart of the broker: cuts connections as {@link Control.cut} does, and applies the `Faults` of restarts.
   * Messages are kept.
   */
  readonly restart: Effect.Effect<void>
  /** Returns the messages of a queue. */
  readonly snapshot: (queue: string) => Effect.Effect<Snapshot>
  /** The messages of all queues, by queue name. */
  readonly queues: Effect.Effect<ReadonlyMap<string, Snapshot>>
}
