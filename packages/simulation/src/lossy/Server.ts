/**
 * A daemon that pushes what it may forget, as nsqd does: leases end unless they are touched, deliveries can be settled on
 * their own connection only, and what is not on disk is lost when the daemon is killed.
 *
 * | unkindness | source |
 * | --- | --- |
 * | FIN, REQ and TOUCH have no answer; one that is too late fails, with the message's id | https://nsq.io/clients/tcp_protocol_spec.html#fin |
 * | one that is too late settles the next delivery of its message, when that went to the same connection | `popInFlightMessage` in https://github.com/nsqio/nsq/blob/v1.3.0/nsqd/channel.go |
 * | what is in flight on a connection that is gone is not handed out again before its lease has ended | `RemoveClient`, same file |
 * | a lease ends at its longest time, however often it is touched | `TouchMessage`, same file |
 * | a message that comes back goes to the end of its channel | `put`, same file |
 * | ends of leases and delays are looked for every 100 ms; in a new channel only after up to 5 s | `queueScanLoop` in https://github.com/nsqio/nsq/blob/v1.3.0/nsqd/nsqd.go |
 * | leases go by the daemon's wall clock, and end early when that steps ahead | same place |
 * | attempts are counted when a message is sent, in 16 bits | `Attempts` in https://github.com/nsqio/nsq/blob/v1.3.0/nsqd/message.go |
 * | a longer delay of REQ is cut to the cap; DPUB with one is refused | https://nsq.io/components/nsqd.html, `--max-req-timeout` |
 * | a refused publish closes its connection, and what was written after it is not read | `IOLoop` in https://github.com/nsqio/nsq/blob/v1.3.0/nsqd/protocol_v2.go |
 * | publishes are answered in their order: a slow one holds up all that the connection has to say | same place |
 * | a daemon that ends in order writes all to disk, and forgets delays | `flush` in channel.go |
 * | a daemon that is killed loses what is in flight or deferred, and what waits in memory | https://nsq.io/overview/features_and_guarantees.html |
 * | to empty a channel takes away what is in flight and deferred as well | `Empty` in channel.go |
 */
import * as Calls from "../world/Calls.ts"
import * as Machine from "../world/Machine.ts"
import * as Store from "../world/Store.ts"
import * as Wire from "../world/Wire.ts"
import type { Due, World } from "../world/World.ts"

/** A frame from a client. `of` is the delivery that is settled, for the history only: a daemon goes by the message's id. */
export type Up =
  | {
      readonly _tag: "Pub"
      readonly queue: string
      readonly parcel: Store.Parcel
      readonly delay: number
      readonly of: number | undefined
    }
  | { readonly _tag: "Sub"; readonly queue: string }
  | { readonly _tag: "Rdy"; readonly count: number }
  | { readonly _tag: "Fin"; readonly id: number; readonly of: number }
  | { readonly _tag: "Req"; readonly id: number; readonly of: number; readonly delay: number }
  | { readonly _tag: "Touch"; readonly id: number }
  | { readonly _tag: "Cls" }

/** A frame from a daemon. `Ok` answers `Pub` and `Cls`; after `Refused` it reads nothing more. */
export type Down =
  | { readonly _tag: "Ok" }
  | { readonly _tag: "Refused"; readonly reason: string }
  | { readonly _tag: "NotInFlight"; readonly id: number }
  | {
      readonly _tag: "Message"
      readonly id: number
      readonly delivery: number
      readonly parcel: Store.Parcel
      readonly attempts: number
      /** When it was stored, in milliseconds since the epoch. */
      readonly timestamp: number
    }

/** The settings of all daemons of a world. Times are in milliseconds. */
export interface Settings {
  readonly lease: number
  /** The longest time from a delivery to the end of its lease. */
  readonly longestLease: number
  /** The longest delay. */
  readonly cap: number
  /** Whether what waits is in memory; else it is on disk. */
  readonly inMemory: boolean
}

/** What happens at the client's end of a connection. */
export interface Ends extends Pick<Wire.Ends<Up, Down>, "onDown" | "onBroken"> {
  /**
   * Messages wait for whom there is no room. No daemon says so: a client that looks at regular intervals, and finds nothing
   * to do, need not be simulated.
   */
  readonly onWaiting?: () => void
}

/** A daemon. */
export interface Server {
  readonly name: string
  readonly isUp: () => boolean
  /** The way to its HTTP interface. */
  readonly calls: Calls.Calls
  /** Opens a connection; `undefined` while the daemon is down. */
  readonly connect: (machine: Machine.Machine, place: string, ends: Ends) => Wire.Wire<Up, Down> | undefined
  /** Whether messages wait in a queue, for the same purpose as `onWaiting`. */
  readonly isWaiting: (queue: string) => boolean
  readonly counts: (queue: string) => { readonly ready: number; readonly inFlight: number; readonly delayed: number }
  /** Takes away all messages of a queue. */
  readonly empty: (queue: string) => void
  /** A producer outside publishes. */
  readonly publish: (queue: string, parcel: Store.Parcel) => void
  /** Ends, and is back after a while with what it has kept. */
  readonly restart: (how: "orderly" | "kill", away: number) => void
  /** Cannot store anything for a while. */
  readonly throttle: (millis: number) => void
}

interface Connection {
  readonly wire: Wire.Wire<Up, Down>
  readonly process: string
  readonly onWaiting: (() => void) | undefined
  queue: string | undefined
  ready: number
  inFlight: number
  /** Frames that are not read yet, while the daemon is slow. */
  unread: Array<Up> | undefined
}

/** A message in flight. */
interface Flight {
  readonly held: Store.Held
  readonly delivery: number
  readonly to: Connection
  readonly since: number
  end: Due
}

/** Milliseconds between two searches for what is due, and between two searches for new channels. */
const scan = { due: 100, channels: 5000 }

/** The longest time for which a daemon is slow, in milliseconds. */
const slowest = 20_000

/** A daemon without messages. */
export const make = (world: World, name: string, settings: Settings): Server => {
  const connections = new Set<Connection>()
  const flights = new Map<number, Flight>()
  /** When each channel was made. */
  const channels = new Map<string, number>()
  const calls = Calls.make(world)
  let isUp = true
  let fullUntil = 0

  const serve = (queue: string): void => {
    while (isWaiting(queue)) {
      const to = next(queue)
      if (to === undefined) return tell(queue)
      hand(to, store.take(queue)!)
    }
  }

  const isWaiting = (queue: string): boolean => store.peek(queue, 1).length > 0

  const tell = (queue: string): void => {
    for (const each of connections) if (each.queue === queue) each.onWaiting?.()
  }

  /** Any of the connections that have room: they compete for messages. */
  const next = (queue: string): Connection | undefined => {
    const able = [...connections].filter((each) => each.queue === queue && each.inFlight < each.ready)
    return able.length < 2 ? able[0] : able[Math.floor(world.draw.between(`${name} next`, 0, able.length))]
  }

  const store = Store.make(world, serve, "end")

  /** Milliseconds until this is noticed. */
  const noticed = (queue: string, delay: number): number => {
    if (delay <= 0) return 0
    const due = Math.ceil((world.now() + delay) / scan.due) * scan.due
    const known = Math.ceil((channels.get(queue) ?? world.now()) / scan.channels) * scan.channels
    return Math.max(due, known) - world.now()
  }

  const channel = (queue: string): void => {
    if (!channels.has(queue)) channels.set(queue, world.now())
  }

  const hand = (to: Connection, held: Store.Held): void => {
    if (held.count === 0xffff) held.count = -1
    const delivery = store.handOut(held, to.process)
    const { copy: id, count: attempts, parcel, storedAt } = held
    const flight: Flight = { held, delivery, to, since: world.now(), end: { at: 0, run: undefined } }
    lend(flight, settings.lease)
    if (world.fault("echo", `${name} clock`)) lend(flight, world.draw.between(`${name} step`, 0, settings.lease))
    flights.set(id, flight)
    to.inFlight++
    to.wire.down({ _tag: "Message", id, delivery, parcel, attempts, timestamp: Machine.epoch + storedAt })
  }

  /** The lease of a delivery ends after this time. */
  const lend = (flight: Flight, millis: number): void => {
    flight.end.run = undefined
    const { held, since } = flight
    const left = Math.min(millis, since + settings.longestLease - world.now())
    flight.end = world.after(noticed(held.queue, left), () => {
      land(flight)
      store.back(held, flight.delivery, 0, "lease")
    })
  }

  const land = ({ end, held, to }: Flight): void => {
    end.run = undefined
    flights.delete(held.copy)
    to.inFlight--
  }

  const inFlightOn = (from: Connection, id: number): Flight | undefined => {
    const flight = flights.get(id)
    if (flight?.to === from) return flight
    from.wire.down({ _tag: "NotInFlight", id })
    return undefined
  }

  const settle = (from: Connection, frame: Extract<Up, { _tag: "Fin" | "Req" }>): void => {
    const flight = inFlightOn(from, frame.id)
    if (flight === undefined) return
    const { held } = flight
    land(flight)
    if (frame._tag === "Fin") {
      store.gone(held, "settled", frame.of)
      return serve(held.queue)
    }
    store.back(held, frame.of, noticed(held.queue, Math.min(frame.delay, settings.cap)), "asked")
    serve(held.queue)
  }

  const publish = (from: Connection, { delay, of, parcel, queue }: Extract<Up, { _tag: "Pub" }>): void => {
    const place = `${from.process} publish ${name}`
    if (world.fault("lostRequest", place)) return breakOff(from)
    const isFull = world.now() < fullUntil || world.fault("busy", place)
    const refused = delay > settings.cap ? "Unsupported" : Store.refusal(world, queue, parcel)
    const reason = isFull ? "Throttled" : refused
    if (reason !== undefined) {
      connections.delete(from)
      return from.wire.down({ _tag: "Refused", reason })
    }
    channel(queue)
    store.keep(queue, parcel, noticed(queue, delay), { process: from.process, of })
    if (world.fault("lostAnswer", place)) return breakOff(from)
    from.wire.down({ _tag: "Ok" })
  }

  const breakOff = (connection: Connection): void => {
    connections.delete(connection)
    connection.wire.cut()
  }

  const read = (from: Connection, frame: Up): void => {
    switch (frame._tag) {
      case "Pub":
        return publish(from, frame)
      case "Sub":
        channel(frame.queue)
        from.queue = frame.queue
        return serve(frame.queue)
      case "Rdy":
        from.ready = frame.count
        return from.queue === undefined ? undefined : serve(from.queue)
      case "Fin":
      case "Req":
        return settle(from, frame)
      case "Touch": {
        const flight = inFlightOn(from, frame.id)
        return flight === undefined ? undefined : lend(flight, settings.lease)
      }
      case "Cls":
        from.ready = 0
        return from.wire.down({ _tag: "Ok" })
    }
  }

  const onUp = (from: Connection, frame: Up): void => {
    if (!connections.has(from)) return
    if (from.unread !== undefined) return void from.unread.push(frame)
    const place = `${from.process} to ${name}`
    if (!world.fault("late", place)) return read(from, frame)
    const unread = [frame]
    from.unread = unread
    world.after(world.draw.between(`${place} slow`, 0, slowest), () => {
      from.unread = undefined
      for (const each of unread) if (connections.has(from)) read(from, each)
    })
  }

  /** Loses what is in flight or deferred, and what waits in memory. */
  const forget = (): void => {
    for (const flight of flights.values()) {
      land(flight)
      store.gone(flight.held, "forgotten")
    }
    for (const held of store.recall()) store.gone(held, "forgotten")
    if (!settings.inMemory) return
    for (const queue of channels.keys()) {
      for (let held = store.take(queue); held !== undefined; held = store.take(queue)) store.gone(held, "forgotten")
    }
  }

  /** Writes everything to disk, which has no delays. */
  const keepAll = (): void => {
    for (const flight of flights.values()) {
      land(flight)
      store.back(flight.held, flight.delivery, 0, "restart")
    }
    for (const held of store.recall()) store.back(held, undefined, 0, "restart")
  }

  return {
    name,
    isUp: () => isUp,
    calls,
    isWaiting,
    connect: (machine, place, { onWaiting, ...ends }) => {
      if (!isUp) return undefined
      const wire = Wire.open<Up, Down>(world, machine, place, {
        ...ends,
        onUp: (frame) => onUp(connection, frame),
        onLost: () => connections.delete(connection)
      })
      const state = { queue: undefined, ready: 0, inFlight: 0, unread: undefined }
      const connection: Connection = { wire, process: machine.name, onWaiting, ...state }
      connections.add(connection)
      return wire
    },
    counts: (queue) => {
      const inFlight = [...flights.values()].filter(({ held }) => held.queue === queue).length
      return { ...store.counts(queue), inFlight }
    },
    empty: (queue) => {
      for (const flight of flights.values()) {
        if (flight.held.queue !== queue) continue
        land(flight)
        store.gone(flight.held, "purged")
      }
      for (const held of store.recall(queue)) store.gone(held, "purged")
      store.purge(queue)
    },
    publish: (queue, parcel) => {
      channel(queue)
      store.keep(queue, parcel, 0, { process: undefined, of: undefined })
    },
    restart: (how, away) => {
      isUp = false
      calls.restart(away)
      for (const { wire } of connections) wire.cut(how === "orderly")
      connections.clear()
      if (how === "kill") forget()
      else keepAll()
      for (const queue of channels.keys()) channels.set(queue, 0)
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
