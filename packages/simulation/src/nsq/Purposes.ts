/** Purposes: the deliveries that commands settle, and those for which they store copies, as the process means it. */
import { Metadata } from "@requeue/core/port"
import type { Delivery } from "../History.ts"
import { type Command, messagesOf } from "../servers/nsq/Commands.ts"
import type * as Facts from "../servers/nsq/Facts.ts"
import { defaults } from "../servers/nsq/Flags.ts"
import type { Frame } from "../servers/nsq/Outbox.ts"
import type { Machine } from "../world/Machine.ts"
import * as Sources from "../world/Sources.ts"
import type { Parcel } from "../world/Parcel.ts"
import type { World } from "../world/World.ts"
import * as Names from "./Names.ts"
import * as Parcels from "./Parcels.ts"

/** A delivery as the connection that received it names it. */
interface Named {
  readonly clientId: string
  readonly id: string
  readonly attempts: number
}

/** The purposes of all commands. */
export interface Purposes {
  /** nsqd delivers a message with this key. */
  readonly given: (process: string, key: number, id: string, delivery: Facts.Delivery) => void
  /** Returns the number of the last delivery with this name that has arrived: two copies of one message may share it. */
  readonly arrivedAs: (named: Named) => Delivery
  /** A frame arrives at the process. Returns it as the process reads it: with the number of its delivery. */
  readonly arrived: (clientId: string, frame: Frame) => Frame
  /** A process writes a command to this nsqd. */
  readonly written: (machine: Machine, address: string, clientId: string, command: Command) => void
  /** Returns the delivery that a command is to settle: nsqd may settle a later one of the same message. */
  readonly settles: (command: Command) => Delivery | undefined
  /** The next message of a command is stored. Returns the delivery whose settlement it serves; `undefined` for a send. */
  readonly stored: (command: Command) => Delivery | undefined
}

const nameOf = ({ attempts, clientId, id }: Named): string => `${clientId} ${id} ${attempts}`

const bodiesOf = ({ body, name }: Command): ReadonlyArray<Buffer> => {
  if (name !== "MPUB") return [body]
  const messages = messagesOf(body, defaults)
  return "error" in messages ? [] : messages
}

/** The start of a message in a frame. */
const start = 26

/** The misfit of a copy that lacks the number of its delivery, is due at another time than that, or is on another nsqd. */
const misfits = { number: Infinity, due: 10_000_000, nsqd: 0.5 }

/** Milliseconds by which the times may differ; and the speed of a clock by a fiftieth. */
const tolerance = 100

/** Milliseconds from now until a copy is due. */
const waitOf = ({ metadata }: Parcel, now: number): number => {
  const { notBefore = 0 } = (metadata === undefined ? undefined : Metadata.decode(metadata)) ?? {}
  return notBefore === 0 ? 0 : notBefore - now
}

/** No command is known. */
export const make = (world: World): Purposes => {
  const sources = Sources.make(world)
  /** Deliveries that are under way, and those that have arrived. */
  const underWay = new Map<string, Array<Delivery>>()
  const arrived = new Map<string, Delivery>()
  /** Deliveries whose copies have their numbers. */
  const numbered = new Set<Delivery>()
  /** The last delivery of each message that has arrived on each connection. */
  const last = new Map<string, Delivery>()
  /** The nsqd of each connection, and the connection of each delivery. */
  const addresses = new Map<string, string>()
  const connections = new Map<Delivery, string>()
  const settled = new WeakMap<Command, Delivery>()
  const copies = new WeakMap<Command, Array<Delivery | undefined>>()

  /** A process prefers the nsqd of the delivery. */
  const publish = (
    { name, wallClock }: Machine,
    address: string,
    topic: string,
    body: Buffer
  ): Delivery | undefined => {
    const parcel = Parcels.read(body)
    const misfit = (delivery: Delivery, wait: number): number =>
      (numbered.has(delivery) ? misfits.number : 0) +
      (Math.abs(waitOf(parcel, wallClock()) - wait) > tolerance + wait / 50 ? misfits.due : 0) +
      (addresses.get(connections.get(delivery)!) === address ? 0 : misfits.nsqd)
    const source = sources.find(name, parcel, Names.inWorld(topic), { copied: Parcels.copied(parcel), misfit })
    if (source !== undefined) sources.sent(source)
    return source
  }

  return {
    given: (process, key, id, { attempts, clientId, number }) => {
      const name = nameOf({ clientId, id, attempts })
      underWay.set(name, [...(underWay.get(name) ?? []), number])
      connections.set(number, clientId)
      sources.given(process, key, number)
    },
    arrivedAs: (named) => arrived.get(nameOf(named))!,
    arrived: (clientId, frame) => {
      if (frame._tag !== "Message") return frame
      const { payload } = frame
      const id = payload.toString("latin1", 10, start)
      const name = nameOf({ clientId, id, attempts: payload.readUInt16BE(8) })
      // They arrive in the order in which they were sent.
      const number = underWay.get(name)!.shift()!
      arrived.set(name, number)
      last.set(`${clientId} ${id}`, number)
      const message = payload.subarray(start)
      const marked = Parcels.numbered(message, number)
      if (marked === message) return frame
      numbered.add(number)
      return { ...frame, payload: Buffer.concat([payload.subarray(0, start), marked]) }
    },
    written: (machine, address, clientId, command) => {
      const { args, name } = command
      const [first = ""] = args
      addresses.set(clientId, address)
      if (name.endsWith("PUB"))
        copies.set(
          command,
          bodiesOf(command).map((body) => publish(machine, address, first, body))
        )
      else if (name === "FIN" || name === "REQ") {
        const delivery = last.get(`${clientId} ${first}`)
        if (delivery !== undefined) settled.set(command, delivery)
      }
    },
    settles: (command) => settled.get(command),
    stored: (command) => {
      const source = copies.get(command)?.shift()
      if (source !== undefined) sources.stored(source)
      return source
    }
  }
}
