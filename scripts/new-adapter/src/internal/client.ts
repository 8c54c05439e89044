/**
 * The connection to Acme. Only this file imports the driver; the rest of the adapter knows the driver by {@link Client}.
 *
 * The MUSTs are those of `packages/core/src/port/Broker.ts`. Change the members to what your broker offers.
 */
import type { BrokerError, Connection } from "@requeue/core/port"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { Settings } from "../AcmeOptions.ts"
import { notWritten } from "./notWritten.ts"

/** A message as Acme takes it. */
export interface Publication {
  readonly queue: string
  readonly body: Uint8Array
  readonly headers: Readonly<Record<string, string>>
  /** Milliseconds for which Acme must hold the message back. */
  readonly delay: number
}

/** A message as Acme delivers it. */
export interface Received {
  /** Acme's id: the same at every delivery of this copy. */
  readonly id: string
  readonly body: Uint8Array
  readonly headers: Readonly<Record<string, string>>
  /** Deliveries of this copy so far, this one included. */
  readonly deliveries: number
  /** When this copy was published, in milliseconds since the epoch. */
  readonly publishedAt: number
}

/** The driver's callbacks to a consumer. */
interface Listener {
  readonly onMessage: (received: Received) => void
  /** Called after a connection was lost and restored, before its first message. MUST 6. */
  readonly onReconnect: () => void
}

/** A consumer of one queue. Only it settles its deliveries. MUST 3. */
export interface Consumer {
  /** The maximum number of messages out at a time, 0 at first; 0 holds before any later call. MUST 5. */
  readonly credit: (limit: number) => void
  /** Whether a message is still held: neither its lease nor its connection is known to be lost. */
  readonly holds: (received: Received) => boolean
  /** Removes a message, or rejects. */
  readonly remove: (received: Received) => Promise<void>
  /** Returns a message, for the next delivery at once, or rejects. */
  readonly requeue: (received: Received) => Promise<void>
  /** Renews the lease of a message, or rejects. */ // leased
  readonly extend: (received: Received) => Promise<void> // leased
  /** Stops, and returns all that is out. */
  readonly close: () => Promise<void>
}

/** Numbers of messages of a queue. */
interface Depths {
  readonly ready: number
  readonly inFlight: number
  readonly delayed: number
}

/** A connection. Each member is a call of the driver, and rejects with the driver's error. */
export interface Client {
  /** Resolves when all are confirmed and each was routable. MUST 1. */
  readonly publish: (publications: ReadonlyArray<Publication>) => Promise<void>
  /** Delivers nothing before its time: MUST 8. Waits for a connection that is lost: MUST 6. */
  readonly consume: (queue: string, listener: Listener) => Promise<Consumer>
  /** Creates a missing queue. */
  readonly declare: (queue: string) => Promise<void>
  /** Whether a queue exists. */
  readonly exists: (queue: string) => Promise<boolean>
  /** Numbers of a queue that may not exist. */
  readonly depths: (queue: string) => Promise<Depths>
  /** Removes all ready messages, perhaps delayed ones as well, and returns their number. */
  readonly purge: (queue: string) => Promise<number>
}

/**
 * Connects, and always reconnects: see `Reconnecting` of `@requeue/kit`. `onState` is called when the connection is lost and when
 * it is restored. MUST 6, 7 and 9.
 */
export const connect = (
  _settings: Settings,
  _onState: (state: Connection.Connection["state"]) => void
): Effect.Effect<Client, BrokerError.BrokerError, Scope.Scope> =>
  Effect.fail(notWritten("connect", "a connection that reconnects automatically, MUST 6", "src/internal/client.ts"))
