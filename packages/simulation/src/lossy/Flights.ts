/** The messages of a daemon that are in flight, and their leases. */
import * as Machine from "../world/Machine.ts"
import type { Held, Store } from "../world/Store.ts"
import type { Due, World } from "../world/World.ts"
import type { Channels } from "./Channels.ts"
import type { Opened, Settings } from "./Protocol.ts"

/** A connection, as the daemon sees it. */
export interface Connection {
  readonly wire: Opened
  readonly process: string
  readonly onWaiting: (() => void) | undefined
  queue: string | undefined
  /** Its requested number of messages in flight. */
  ready: number
  inFlight: number
  /** Whether its frames are read. */
  isRead: () => boolean
}

/** A message in flight. */
interface Flight {
  readonly held: Held
  readonly delivery: number
  readonly to: Connection
  readonly since: number
  end: Due
}

/** The flights of a daemon. */
export interface Flights {
  /** Delivers a message. */
  readonly send: (to: Connection, held: Held) => void
  /** Takes a message out of flight; reports an unknown id to the connection. */
  readonly land: (from: Connection, id: number) => Flight | undefined
  /** Renews a lease; reports an unknown id to the connection. */
  readonly touch: (from: Connection, id: number) => void
  /** Takes all messages out of flight, by default of all queues. */
  readonly landAll: (queue?: string) => ReadonlyArray<Flight>
  readonly count: (queue: string) => number
}

/** The largest number of attempts that is counted. */
const countLimit = 0xffff

/** Nothing in flight. */
export const make = (
  world: World,
  name: string,
  { lease, longestLease }: Settings,
  { noticed }: Channels,
  store: Store
): Flights => {
  const flights = new Map<number, Flight>()

  const remove = (flight: Flight): void => {
    flight.end.run = undefined
    flights.delete(flight.held.copy)
    flight.to.inFlight--
  }

  /** The lease of a delivery ends after this many milliseconds. */
  const lend = (flight: Flight, millis: number): void => {
    const { delivery, held, since } = flight
    const left = Math.min(millis, since + longestLease - world.now())
    flight.end.run = undefined
    flight.end = world.after(noticed(held.queue, left), () => {
      remove(flight)
      store.back(held, delivery, 0, "lease")
    })
  }

  const find = (from: Connection, id: number): Flight | undefined => {
    const flight = flights.get(id)
    if (flight?.to === from) return flight
    from.wire.down({ _tag: "NotInFlight", id })
    return undefined
  }

  const all = (queue?: string): ReadonlyArray<Flight> =>
    [...flights.values()].filter(({ held }) => queue === undefined || held.queue === queue)

  return {
    send: (to, held) => {
      if (held.count === countLimit) held.count = -1
      const delivery = store.handOut(held, to.process)
      const { copy: id, count: attempts, parcel, storedAt } = held
      const flight: Flight = { held, delivery, to, since: world.now(), end: { at: 0, run: undefined } }
      lend(flight, lease)
      if (world.fault("echo", `${name} clock`)) lend(flight, world.draw.between(`${name} step`, 0, lease))
      flights.set(id, flight)
      to.inFlight++
      to.wire.down({ _tag: "Message", id, delivery, parcel, attempts, timestamp: Machine.epoch + storedAt })
    },
    land: (from, id) => {
      const flight = find(from, id)
      if (flight !== undefined) remove(flight)
      return flight
    },
    touch: (from, id) => {
      const flight = find(from, id)
      if (flight !== undefined) lend(flight, lease)
    },
    landAll: (queue) => {
      const landed = all(queue)
      for (const flight of landed) remove(flight)
      return landed
    },
    count: (queue) => all(queue).length
  }
}
