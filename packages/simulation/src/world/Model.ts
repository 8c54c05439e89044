/** Models of brokers, as the rest of the world uses them. */
import type { Broker } from "@requeue/core"
import type { Machine } from "./Machine.ts"
import type { Parcel } from "./Store.ts"

/** A broker's client, without browsers: these are made over its subscriptions, so that the history has all that they show. */
export interface Client extends Omit<Broker.Service, "admin"> {
  readonly admin: Omit<Broker.Admin, "browse">
}

/** A broker and the way to it. */
export interface Model {
  /** The broker's client in this process. */
  readonly client: (machine: Machine) => Client
  /** A producer outside, which knows nothing of Requeue, stores a message, and is told when it is stored. */
  readonly publish: (queue: string, parcel: Parcel, stored: () => void) => void
  /** Breaks all connections, and comes back after a while with what its kind keeps. */
  readonly restart: (away: number) => void
  /** Says for a while that it cannot now. */
  readonly throttle: (millis: number) => void
  /** The requests that will still arrive, though nobody may wait for them. Default: none. */
  readonly underWay?: () => number
}
