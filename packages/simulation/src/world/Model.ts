/** Models of brokers, as the rest of the world uses them. */
import type { Broker, Delivery } from "@requeue/core"
import type * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { Machine } from "./Machine.ts"
import type { Parcel } from "./Parcel.ts"

/** A broker's client. */
export interface Client extends Broker.Service {
  /** The number that the history has for a delivery. */
  readonly numberOf: (delivery: Delivery.Delivery) => number
}

/** Why a client cannot be made. */
export interface Failure {
  readonly _tag: string
}

/** A transaction of a program in the broker's database. Asynchronous ones return promises. */
export interface Transaction {
  /** The value that the program passes to `within`. */
  readonly value: unknown
  /** Writes a row for a delivery. */
  readonly write: (delivery: number) => void | Promise<void>
  readonly commit: () => void | Promise<void>
  readonly rollback: () => void | Promise<void>
}

/** Begins a transaction. Throws if the database is locked. */
export type Begin = (isAsynchronous: boolean) => Transaction

/** A broker and the connection to it. */
export interface Model {
  /** Makes the broker's client in this process. */
  readonly client: (machine: Machine) => Effect.Effect<Client, Failure, Scope.Scope>
  /** A foreign producer stores a message, and receives the confirmation. */
  readonly publish: (queue: string, parcel: Parcel, stored: () => void) => void
  /** Begins transactions of a process that has a client. Default: the broker has none. */
  readonly begin?: (machine: Machine) => Begin
  /** Breaks all connections, and restarts after a while with what its kind keeps. */
  readonly restart: (away: number) => void
  /** Reports for a while that it is too busy. */
  readonly throttle: (millis: number) => void
  /** The requests that will still arrive, even without a waiting caller. Default: none. */
  readonly underWay?: () => number
  /** Called when the world has ended. */
  readonly close?: () => void
}
