/** Connections: whether a broker can be reached, as its adapter last saw it. */

/** The state of the connection to a broker. */
export interface Connection {
  /** `up` when messages can be both published and consumed. */
  readonly state: "up" | "down"
  /** When this state began, in milliseconds since the epoch. */
  readonly since: number
  /** Why the last attempt to connect failed; `undefined` if none failed, or the adapter does not report it. */
  readonly because?: string | undefined
}

/**
 * Combines connections that are all needed. The result is up since the last one came up, or down since the first one
 * went down.
 */
export const all = (first: Connection, ...others: ReadonlyArray<Connection>): Connection =>
  others.reduce((one, other) => {
    if (one.state !== other.state) return one.state === "down" ? one : other
    const isFirst = one.since < other.since
    return isFirst === (one.state === "down") ? one : other
  }, first)

/** Keeps the state of a connection, and the time at which it changed. */
export interface Tracker {
  readonly current: () => Connection
  /** Sets the state, and why the connection is down. Setting the same state again keeps its time. */
  readonly set: (state: Connection["state"], because?: string) => void
}

/** Tracks a connection. `now` returns milliseconds since the epoch. */
export const track = (state: Connection["state"], now: () => number): Tracker => {
  let current: Connection = { state, since: now() }
  return {
    current: () => current,
    set: (next, because) => {
      if (next === current.state && because === current.because) return
      const since = next === current.state ? current.since : now()
      current = because === undefined ? { state: next, since } : { state: next, since, because }
    }
  }
}
