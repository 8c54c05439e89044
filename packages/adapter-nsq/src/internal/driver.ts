/** The seam between the adapter and nsqd: connections, requests, and the driver that makes them. */
import type { Settings } from "../NsqOptions.ts"
import type { Address, HttpInterface } from "./address.ts"
import type { HttpResponse, RequestOptions } from "./httpClient.ts"

/** The answer of nsqd to `IDENTIFY`. Times are in milliseconds. */
export interface Identity {
  readonly version: string
  readonly maxRdyCount: number
  readonly msgTimeout: number
  readonly maxMsgTimeout: number
  /** Requested features that nsqd does not provide, as text. */
  readonly notes: ReadonlyArray<string>
}

/** The events of a connection. */
export interface Listener {
  /** A message has arrived, with the data of its frame; see `toFrame`. */
  readonly message: (payload: Buffer) => void
  /** nsqd refused a command but keeps the connection, for example `E_FIN_FAILED FIN <id> failed ID not in flight`. */
  readonly refused: (text: string) => void
  /** The connection has closed. Called once, after all other events. */
  readonly closed: (error: unknown) => void
}

/** A connection that nsqd has accepted. */
export interface Connection {
  /** The unique name of this connection in nsqd's statistics. */
  readonly clientId: string
  readonly identity: Identity
  readonly isOpen: () => boolean
  /** Number of answers, heartbeats and messages that have arrived. */
  readonly heard: () => number
  /** Writes commands. Calls `done` when the socket has accepted them, or with an error. */
  readonly write: (commands: string, done: (error: Error | null | undefined) => void) => void
  /**
   * Asks nsqd to stop sending messages. Resolves when nsqd has handled all earlier commands, or the connection has
   * closed.
   */
  readonly stop: () => Promise<void>
  /** Writes the remaining commands and ends the connection. */
  readonly end: () => void
  /** Drops the socket at once. */
  readonly destroy: (because?: Error) => void
}

/** A connection for publishing. */
export interface PublishingConnection extends Connection {
  /** Writes publish commands together. Calls each `done` once with nsqd's answer, in order. */
  readonly publish: (commands: ReadonlyArray<PublishCommand>) => void
}

/** A publish command: its bytes, and the function that receives nsqd's answer. */
export interface PublishCommand {
  readonly command: Buffer
  readonly done: (error: Error | null) => void
}

/** The channel of a connection that receives messages, and its lease in milliseconds; `undefined` for nsqd's. */
export interface Subscription {
  readonly topic: string
  readonly channel: string
  readonly messageTimeout: number | undefined
}

/** The ways to nsqd and nsqlookupd. Each function rejects when the signal aborts. */
export interface Driver {
  /** Opens a connection that receives the messages of a channel. */
  readonly subscribe: (
    settings: Settings,
    address: Address,
    subscription: Subscription,
    on: Listener,
    signal: AbortSignal
  ) => Promise<Connection>
  /** Opens a connection for publishing. */
  readonly connectPublisher: (
    settings: Settings,
    address: Address,
    closed: Listener["closed"],
    signal: AbortSignal
  ) => Promise<PublishingConnection>
  /** Sends one HTTP request. */
  readonly ask: (base: HttpInterface, path: string, options: RequestOptions) => Promise<HttpResponse>
}
