/** How many connections of one purpose are open. One is enough for that purpose. */
import { type BrokerError, Connection } from "@requeue/core/port"

export interface ConnectionCount {
  /** Counts a connection that has opened, or one less for `undefined`. */
  readonly changed: (connection: object | undefined) => void
  /** Keeps why an attempt to connect has failed, while no connection is open. */
  readonly failed: (error: BrokerError.BrokerError) => void
  /** `up` while at least one connection is open, else `down`; since when, and why it is down. */
  readonly state: () => Connection.Connection
}

/** Counts from none. `now` answers milliseconds since the epoch. */
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
