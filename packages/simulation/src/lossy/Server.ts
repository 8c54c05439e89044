/**
 * A daemon that pushes messages and may lose them, such as nsqd: leases end unless they are touched, deliveries can be settled on
 * their connection only, and messages that are not on disk are lost when the daemon is killed.
 *
 * | unkindness | source |
 * | --- | --- |
 * | FIN, REQ and TOUCH have no answer; one that is too late fails, with the message's id | https://nsq.io/clients/tcp_protocol_spec.html#fin |
 * | one that is too late settles the next delivery of its message, when that went to the same connection | `popInFlightMessage` in https://github.com/nsqio/nsq/blob/v1.3.0/nsqd/channel.go |
 * | a message in flight on a closed connection is not redelivered before its lease has ended | `RemoveClient`, same file |
 * | a lease ends at its longest time, however often it is touched | `TouchMessage`, same file |
 * | a returned message goes to the end of its channel | `put`, same file |
 * | ends of leases and delays are looked for every 100 ms; in a new channel only after up to 5 s | `queueScanLoop` in https://github.com/nsqio/nsq/blob/v1.3.0/nsqd/nsqd.go |
 * | leases use the daemon's wall clock, and end early when that steps ahead | same place |
 * | attempts are counted when a message is sent, in 16 bits | `Attempts` in https://github.com/nsqio/nsq/blob/v1.3.0/nsqd/message.go |
 * | a longer delay of REQ is cut to the cap; DPUB with one is refused | https://nsq.io/components/nsqd.html, `--max-req-timeout` |
 * | a refused publish closes its connection, and later frames are not read | `IOLoop` in https://github.com/nsqio/nsq/blob/v1.3.0/nsqd/protocol_v2.go |
 * | publishes are answered in their order: a slow one holds up all later answers of the connection | same place |
 * | a daemon that shuts down in order writes all to disk, and forgets delays | `flush` in channel.go |
 * | a daemon that is killed loses messages in flight, deferred or in memory | https://nsq.io/overview/features_and_guarantees.html |
 * | emptying a channel removes messages in flight and deferred ones as well | `Empty` in channel.go |
 */
import * as Calls from "../world/Calls.ts"
import type { Machine } from "../world/Machine.ts"
import * as Store from "../world/Store.ts"
import * as Wire from "../world/Wire.ts"
import type { World } from "../world/World.ts"
import * as Channels from "./Channels.ts"
import * as Commands from "./Commands.ts"
import * as Flights from "./Flights.ts"
import type { Down, Ends, Opened, Settings, Up } from "./Protocol.ts"

/** A daemon. */
export interface Server {
  readonly name: string
  readonly isUp: () => boolean
  /** The connection to its HTTP interface. */
  readonly calls: Calls.Calls
  /** Opens a connection; `undefined` while the daemon is down. */
  readonly connect: (machine: Machine, place: string, ends: Ends) => Opened | undefined
  /** Whether messages wait in a queue, for the same purpose as `onWaiting`. */
  readonly isWaiting: (queue: string) => boolean
  readonly counts: (queue: string) => { readonly ready: number; readonly inFlight: number; readonly delayed: number }
  /** Removes all messages of a queue. */
  readonly empty: (queue: string) => void
  /** A producer outside publishes. */
  readonly publish: (queue: string, parcel: Store.Parcel) => void
  /** Ends, and restarts after a while with what it has kept. */
  readonly restart: (how: "orderly" | "kill", away: number) => void
  /** Cannot store anything for a while. */
  readonly throttle: (millis: number) => void
}

/** The longest time for which a daemon does not read from a connection, in milliseconds. */
const slowest = 20_000

/** Reads frames in their order, and sometimes late. */
const reading = (world: World, name: string, execute: (from: Flights.Connection, frame: Up) => void) => {
  const unread = new Map<Flights.Connection, Array<Up>>()
  const read = (from: Flights.Connection, frame: Up): void => {
    if (from.isRead()) execute(from, frame)
  }
  return (from: Flights.Connection, frame: Up): void => {
    const before = unread.get(from)
    if (before !== undefined) return void before.push(frame)
    const place = `${from.process} to ${name}`
    if (!world.fault("late", place)) return read(from, frame)
    const frames = [frame]
    unread.set(from, frames)
    // Most often for a moment only.
    world.after(slowest * world.draw.unit(`${place} slow`) ** 3, () => {
      unread.delete(from)
      for (const each of frames) read(from, each)
    })
  }
}

/** Delivers messages of a queue to those of these connections that have room, which compete for them. */
const serving = (world: World, name: string, connections: ReadonlySet<Flights.Connection>) => {
  const next = (queue: string): Flights.Connection | undefined => {
    const able = [...connections].filter((each) => each.queue === queue && each.inFlight < each.ready)
    return able.length < 2 ? able[0] : able[Math.floor(world.draw.between(`${name} next`, 0, able.length))]
  }
  return (queue: string, isWaiting: () => boolean, send: (to: Flights.Connection) => void): void => {
    while (isWaiting()) {
      const to = next(queue)
      if (to !== undefined) send(to)
      else {
        for (const each of connections) if (each.queue === queue) each.onWaiting?.()
        return
      }
    }
  }
}

/** Loses messages in flight, deferred, and waiting in these queues. */
const forget = (store: Store.Store, flights: Flights.Flights, queues: ReadonlyArray<string>): void => {
  for (const { held } of flights.landAll()) store.gone(held, "forgotten")
  for (const held of store.recall()) store.gone(held, "forgotten")
  for (const queue of queues) {
    for (let held = store.take(queue); held !== undefined; held = store.take(queue)) store.gone(held, "forgotten")
  }
}

/** Writes everything to disk, without delays. */
const keepAll = (store: Store.Store, flights: Flights.Flights): void => {
  for (const { delivery, held } of flights.landAll()) store.back(held, delivery, 0, "restart")
  for (const held of store.recall()) store.back(held, undefined, 0, "restart")
}

/** A daemon without messages. */
export const make = (world: World, name: string, settings: Settings): Server => {
  const connections = new Set<Flights.Connection>()
  const channels = Channels.make(world)
  const calls = Calls.make(world)
  const handOut = serving(world, name, connections)
  let isUp = true
  let lives = 1
  let fullUntil = 0

  const isWaiting = (queue: string): boolean => store.isReady(queue)
  const serve = (queue: string): void =>
    handOut(
      queue,
      () => isWaiting(queue),
      (to) => flights.send(to, store.take(queue)!)
    )
  const leave = (connection: Flights.Connection): void => {
    connection.isRead = () => false
    connections.delete(connection)
  }
  const isFull = (): boolean => world.now() < fullUntil

  const store = Store.make(world, serve, "end")
  const flights = Flights.make(world, name, settings, channels, store)
  const read = reading(
    world,
    name,
    Commands.make({ world, name, settings, store, channels, flights, serve, isFull, leave })
  )

  return {
    name,
    isUp: () => isUp,
    calls,
    isWaiting,
    connect: (machine, place, { onWaiting, ...ends }) => {
      if (!isUp) return undefined
      const wire = Wire.open<Up, Down>(world, machine, place, {
        ...ends,
        onUp: (frame) => read(connection, frame),
        // Frames that it has sent before are still read.
        onLost: () => connections.delete(connection)
      })
      const life = lives
      const state = { queue: undefined, ready: 0, inFlight: 0, isRead: () => life === lives }
      const connection: Flights.Connection = { wire, process: machine.name, onWaiting, ...state }
      connections.add(connection)
      return wire
    },
    counts: (queue) => ({ ...store.counts(queue), inFlight: flights.count(queue) }),
    empty: (queue) => {
      for (const { held } of flights.landAll(queue)) store.gone(held, "purged")
      for (const held of store.recall(queue)) store.gone(held, "purged")
      store.purge(queue)
    },
    publish: (queue, parcel) => {
      channels.open(queue)
      store.keep(queue, parcel, 0, { process: undefined, of: undefined })
    },
    restart: (how, away) => {
      isUp = false
      lives++
      calls.restart(away)
      for (const { wire } of connections) wire.cut(how === "orderly")
      connections.clear()
      if (how === "kill") forget(store, flights, settings.inMemory ? channels.names() : [])
      else keepAll(store, flights)
      channels.reread()
      world.after(away, () => {
        isUp = true
      })
    },
    throttle: (millis) => {
      fullUntil = world.now() + millis
      calls.throttle(millis)
    }
  }
}
