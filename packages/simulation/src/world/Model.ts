/** Models of brokers, as the rest of the world uses them. */
import type { Broker } from "@requeue/core"
import type { Machine } from "./Machine.ts"
import type { Parcel } from "./Store.ts"

/** A broker's client, without browsers: these use its subscriptions, so the history has all that they show. */
export interface Client extends Omit<Broker.Service, "admin"> {
  readonly admin: Omit<Broker.Admin, "browse">
}

/** A broker and the connection to it. */
export interface Model {
  /** The broker's client in this process. */
  readonly client: (machine: Machine) => Client
  /** A foreign producer stores a message, and receives the confirmation. */
  readonly publish: (queue: string, parcel: Parcel, stored: () => void) => void
  /** Breaks all connections, and restarts after a while with what its kind keeps. */
  readonly restart: (away: number) => void
  /** Reports for a while that it is too busy. */
  readonly throttle: (millis: number) => void
  /** The requests that will still arrive, even without a waiting caller. Default: none. */
  readonly underWay?: () => number
}
