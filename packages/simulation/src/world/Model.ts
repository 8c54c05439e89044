/** Models of brokers, as the rest of the world uses them. */
import type { Broker, Delivery } from "@requeue/core"
import type * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { Machine } from "./Machine.ts"
import type { Parcel } from "./Store.ts"

/** A broker's client. */
export interface Client extends Broker.Service {
  /** The number that the history has for a delivery. */
  readonly numberOf: (delivery: Delivery.Delivery) => number
}

/** Why a client cannot be made. */
export interface Failure {
  readonly _tag: string
}

/** A broker and the connection to it. */
export interface Model {
  /** Makes the broker's client in this process. */
  readonly client: (machine: Machine) => Effect.Effect<Client, Failure, Scope.Scope>
  /** A foreign producer stores a message, and receives the confirmation. */
  readonly publish: (queue: string, parcel: Parcel, stored: () => void) => void
  /** Breaks all connections, and restarts after a while with what its kind keeps. */
  readonly restart: (away: number) => void
  /** Reports for a while that it is too busy. */
  readonly throttle: (millis: number) => void
  /** The requests that will still arrive, even without a waiting caller. Default: none. */
  readonly underWay?: () => number
}
