/** Purposes: the deliveries that commands settle, and those for which they store copies, as the process means it. */
import type { Delivery } from "../History.ts"
import { type Command, messagesOf } from "../servers/nsq/Commands.ts"
import type * as Facts from "../servers/nsq/Facts.ts"
import { defaults } from "../servers/nsq/Flags.ts"
import type { Frame } from "../servers/nsq/Outbox.ts"
import * as Sources from "../world/Sources.ts"
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
  /** A frame arrives at the process. */
  readonly arrived: (clientId: string, frame: Frame) => void
  /** A process writes a command. */
  readonly written: (process: string, clientId: string, command: Command) => void
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

/** No command is known. */
export const make = (world: World): Purposes => {
  const sources = Sources.make(world)
  /** Deliveries that are under way, and those that have arrived. */
  const underWay = new Map<string, Array<Delivery>>()
  const arrived = new Map<string, Delivery>()
  /** The last delivery of each message that has arrived on each connection. */
  const last = new Map<string, Delivery>()
  const settled = new WeakMap<Command, Delivery>()
  const copies = new WeakMap<Command, Array<Delivery | undefined>>()

  const publish = (process: string, topic: string, body: Buffer): Delivery | undefined => {
    const source = sources.find(process, Parcels.read(body), Names.inWorld(topic))
    if (source !== undefined) sources.sent(source)
    return source
  }

  return {
    given: (process, key, id, { attempts, clientId, number }) => {
      const name = nameOf({ clientId, id, attempts })
      underWay.set(name, [...(underWay.get(name) ?? []), number])
      sources.given(process, key, number)
    },
    arrivedAs: (named) => arrived.get(nameOf(named))!,
    arrived: (clientId, frame) => {
      if (frame._tag !== "Message") return
      const { payload } = frame
      const id = payload.toString("latin1", 10, 26)
      const name = nameOf({ clientId, id, attempts: payload.readUInt16BE(8) })
      // They arrive in the order in which they were sent.
      const number = underWay.get(name)!.shift()!
      arrived.set(name, number)
      last.set(`${clientId} ${id}`, number)
    },
    written: (process, clientId, command) => {
      const { args, name } = command
      const [first = ""] = args
      if (name.endsWith("PUB"))
        copies.set(
          command,
          bodiesOf(command).map((body) => publish(process, first, body))
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
