/**
 * A handle on a memory broker from behind the port, for tests and the conformance harness.
 *
 * When to use: get one from `MemoryBroker.makeControlled`, to look into queues, to be a foreign producer, or to break
 * the connection.
 */
import type { BrokerError, Delivery, Message } from "@requeue/core/port"
import type * as Effect from "effect/Effect"

/**
 * A queue's messages. Those that are ready or delayed are shown as the next consumer would see them, with no receipt.
 */
export interface Snapshot {
  /** In the order of delivery. */
  readonly ready: ReadonlyArray<Delivery.Delivery>
  /** In the order in which they are due; `dueIn` is in milliseconds from now. */
  readonly delayed: ReadonlyArray<{ readonly delivery: Delivery.Delivery; readonly dueIn: number }>
  /** In the order in which they were delivered. */
  readonly inFlight: ReadonlyArray<Delivery.Delivery>
  /** The number of the queue's consumers. */
  readonly consumers: number
}

/** The handle. */
export interface Control {
  /** Publishes a message as a foreign producer does: it has no metadata, so the broker gives it an id and a time. */
  readonly publishRaw: (
    queue: string,
    body: Uint8Array,
    headers?: Message.Headers
  ) => Effect.Effect<void, BrokerError.BrokerError>
  /**
   * Breaks all connections and makes them again: unsettled deliveries go back to their queues, every subscription's
   * `onReconnect` is called, and then deliveries go on with the last credit.
   */
  readonly cut: Effect.Effect<void>
  /**
   * Imitates a restart of the broker: {@link Control.cut}, and what `Faults` say about restarts. Messages are kept.
   */
  readonly restart: Effect.Effect<void>
  /** The messages of a queue. */
  readonly snapshot: (queue: string) => Effect.Effect<Snapshot>
  /** The messages of all queues, by the queues' names. */
  readonly queues: Effect.Effect<ReadonlyMap<string, Snapshot>>
}
