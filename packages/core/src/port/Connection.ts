/** Whether a broker can be reached, as its adapter has seen it last. */
export interface Connection {
  /** `up` when publishing and consuming can both go on. */
  readonly state: "up" | "down"
  /** Since when, in milliseconds since the epoch. */
  readonly since: number
}

/** The state of connections that are all needed: up since the last came up, down since the first went down. */
export const all = (first: Connection, ...others: ReadonlyArray<Connection>): Connection =>
  others.reduce((one, other) => {
    if (one.state !== other.state) return one.state === "down" ? one : other
    const isFirst = one.since < other.since
    return isFirst === (one.state === "down") ? one : other
  }, first)

/** A state that changes. */
export interface Tracker {
  readonly current: () => Connection
  /** Saying the same again changes nothing. */
  readonly set: (state: Connection["state"]) => void
}

/** `now` in milliseconds since the epoch. */
export const track = (state: Connection["state"], now: () => number): Tracker => {
  let current: Connection = { state, since: now() }
  return {
    current: () => current,
    set: (next) => {
      if (next !== current.state) current = { state: next, since: now() }
    }
  }
}
