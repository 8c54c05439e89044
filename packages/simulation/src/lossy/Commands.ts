/** Carries out the commands of clients. */
import * as Store from "../world/Store.ts"
import type { World } from "../world/World.ts"
import type { Channels } from "./Channels.ts"
import type { Connection, Flights } from "./Flights.ts"
import type { Settings, Up } from "./Protocol.ts"

interface Dependencies {
  readonly world: World
  /** The daemon's name among the faults. */
  readonly name: string
  readonly settings: Settings
  readonly store: Store.Store
  readonly channels: Channels
  readonly flights: Flights
  /** Delivers the waiting messages of a queue. */
  readonly serve: (queue: string) => void
  /** Whether nothing can be stored now. */
  readonly isFull: () => boolean
  /** Stops reading from a connection. */
  readonly leave: (connection: Connection) => void
}

type Publish = Extract<Up, { _tag: "Pub" }>

/** The reason why a publish is refused, if any. */
const refusal = (from: Connection, { delay, parcel, queue }: Publish, dependencies: Dependencies) => {
  const { isFull, name, settings, world } = dependencies
  if (isFull() || world.fault("busy", `${from.process} publish ${name}`)) return "Throttled"
  return delay > settings.cap ? "Unsupported" : Store.refusal(world, queue, parcel)
}

const publishing = (dependencies: Dependencies) => {
  const { channels, leave, name, store, world } = dependencies
  const breakOff = (connection: Connection): void => {
    leave(connection)
    connection.wire.cut()
  }
  return (from: Connection, frame: Publish): void => {
    const { delay, of, parcel, queue } = frame
    const place = `${from.process} publish ${name}`
    if (world.fault("lostRequest", place)) return breakOff(from)
    const reason = refusal(from, frame, dependencies)
    if (reason !== undefined) {
      leave(from)
      return from.wire.down({ _tag: "Refused", reason })
    }
    channels.open(queue)
    store.keep(queue, parcel, channels.noticed(queue, delay), { process: from.process, of })
    if (world.fault("lostAnswer", place)) return breakOff(from)
    from.wire.down({ _tag: "Ok" })
  }
}

/** Carries out one command. */
export const make = (dependencies: Dependencies): ((from: Connection, frame: Up) => void) => {
  const { channels, flights, serve, settings, store } = dependencies
  const publish = publishing(dependencies)
  return (from, frame) => {
    switch (frame._tag) {
      case "Pub":
        return publish(from, frame)
      case "Sub":
        channels.open(frame.queue)
        from.queue = frame.queue
        return serve(frame.queue)
      case "Rdy":
        from.ready = frame.count
        return from.queue === undefined ? undefined : serve(from.queue)
      case "Fin":
      case "Req": {
        const held = flights.land(from, frame.id)?.held
        if (held === undefined) return
        const { queue } = held
        if (frame._tag === "Fin") store.gone(held, "settled", frame.of)
        else store.back(held, frame.of, channels.noticed(queue, Math.min(frame.delay, settings.cap)), "asked")
        return serve(queue)
      }
      case "Touch":
        return flights.touch(from, frame.id)
      case "Cls":
        from.ready = 0
        return from.wire.down({ _tag: "Ok" })
    }
  }
}
