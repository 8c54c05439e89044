/** Connections of which one is enough: whether there is one, and since when. */
import { Connection } from "@requeue/core/adapter-kit"

export interface Presence {
  readonly gained: () => void
  readonly lost: () => void
  readonly state: () => Connection.Connection
}

/** `now` in milliseconds since the epoch. */
export const make = (now: () => number): Presence => {
  const tracker = Connection.track("down", now)
  let count = 0
  const change = (by: number) => () => {
    count += by
    tracker.set(count > 0 ? "up" : "down")
  }
  return { gained: change(1), lost: change(-1), state: tracker.current }
}
