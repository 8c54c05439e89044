/**
 * A handle on a memory broker from behind the port: what only tests and the conformance harness may do.
 *
 * When to use: get one from `MemoryBroker.makeControlled`, to look into queues, to be a foreign producer, or to break
 * the connection.
 */
import type { BrokerError } from "@requeue/core/BrokerError"
import type { Delivery } from "@requeue/core/Delivery"
import type { Headers } from "@requeue/core/Message"
import type * as Effect from "effect/Effect"

/** A queue's messages. Those that wait are shown as the next consumer would see them, with no receipt. */
export interface Snapshot {
  /** In the order of delivery. */
  readonly ready: ReadonlyArray<Delivery>
  /** In the order in which they are due; `dueIn` is in milliseconds from now. */
  readonly delayed: ReadonlyArray<{ readonly delivery: Delivery; readonly dueIn: number }>
  /** As they were handed out, oldest first. */
  readonly inFlight: ReadonlyArray<Delivery>
  /** How many consumers the queue has. */
  readonly consumers: number
}

export interface Control {
  /** Publishes a foreign producer's plain message: no metadata, so the broker gives it an id and a time. */
  readonly publishRaw: (queue: string, body: Uint8Array, headers?: Headers) => Effect.Effect<void, BrokerError>
  /**
   * Breaks all connections and makes them again: unsettled deliveries go back to their queues, every subscription's
   * `onReconnect` is called, and then deliveries go on with the last credit.
   */
  readonly cut: Effect.Effect<void>
  /**
   * Imitates a restart of the broker: {@link Control.cut}, and what `Vices` say about restarts. Messages are kept.
   */
  readonly restart: Effect.Effect<void>
  readonly snapshot: (queue: string) => Effect.Effect<Snapshot>
  /** Every queue by its name. */
  readonly queues: Effect.Effect<ReadonlyMap<string, Snapshot>>
}
