/** Counts the open connections of one purpose, for which one connection suffices. */
import { type BrokerError, Connection } from "@requeue/core/port"

export interface ConnectionCount {
  /** Adds an opened connection, or for `undefined` subtracts one. */
  readonly changed: (connection: object | undefined) => void
  /** Records why an attempt to connect has failed, if no connection is open. */
  readonly failed: (error: BrokerError.BrokerError) => void
  /** Returns `up` while a connection is open, otherwise `down`, with the time of the change and the reason. */
  readonly state: () => Connection.Connection
}

/** Starts at 0. `now` returns milliseconds since the epoch. */
export const make = (now: () => number): ConnectionCount => {
  const tracker = Connection.track("down", now)
  let count = 0
  return {
    changed: (connection) => {
      count += connection === undefined ? -1 : 1
      tracker.set(count > 0 ? "up" : "down")
    },
    failed: ({ message }) => {
      if (count === 0) tracker.set("down", message)
    },
    state: tracker.current
  }
}
