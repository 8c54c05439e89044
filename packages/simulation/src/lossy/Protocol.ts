/** The frames between a client and a daemon, and what both know of each other. */
import type { Parcel } from "../world/Store.ts"
import type * as Wire from "../world/Wire.ts"

/** A frame from a client. `of` is the settled delivery, for the history only: a daemon uses the message's id. */
export type Up =
  | {
      readonly _tag: "Pub"
      readonly queue: string
      readonly parcel: Parcel
      readonly delay: number
      readonly of: number | undefined
    }
  | { readonly _tag: "Sub"; readonly queue: string }
  | { readonly _tag: "Rdy"; readonly count: number }
  | { readonly _tag: "Fin"; readonly id: number; readonly of: number }
  | { readonly _tag: "Req"; readonly id: number; readonly of: number; readonly delay: number }
  | { readonly _tag: "Touch"; readonly id: number }
  | { readonly _tag: "Cls" }

/** A delivered message. */
export interface Message {
  readonly _tag: "Message"
  /** The same at each delivery of the message. */
  readonly id: number
  readonly delivery: number
  readonly parcel: Parcel
  /** Deliveries so far, this one included, in 16 bits. */
  readonly attempts: number
  /** When it was stored, in milliseconds since the epoch. */
  readonly timestamp: number
}

/** A frame from a daemon. `Ok` answers `Pub` and `Cls`; after `Refused` it stops reading. */
export type Down =
  | { readonly _tag: "Ok" }
  | { readonly _tag: "Refused"; readonly reason: string }
  | { readonly _tag: "NotInFlight"; readonly id: number }
  | Message

/** The settings of all daemons of a world. Times are in milliseconds. */
export interface Settings {
  readonly lease: number
  /** The longest time from a delivery to the end of its lease. */
  readonly longestLease: number
  /** The longest delay. */
  readonly cap: number
  /** Whether waiting messages are in memory; else they are on disk. */
  readonly inMemory: boolean
}

/** The client's end of a connection. */
export interface Ends extends Pick<Wire.Ends<Up, Down>, "onDown" | "onBroken"> {
  /**
   * Messages wait for a receiver without room. No daemon reports that: it spares a client regular checks that would find nothing.
   */
  readonly onWaiting?: () => void
}

/** A connection, as both ends see it. */
export type Opened = Wire.Wire<Up, Down>
