/** Receives the messages of a queue from all daemons. */
import type { Delivery, Metadata } from "@requeue/core/port"
import type { Machine } from "../world/Machine.ts"
import * as Parcels from "../world/Parcels.ts"
import * as Credit from "./Credit.ts"
import * as Link from "./Link.ts"
import type { Down, Message, Settings } from "./Protocol.ts"
import type { Server } from "./Server.ts"
import * as Session from "./Session.ts"

/** A consumer of one queue. */
export interface Consumer {
  readonly credit: (limit: number) => void
  readonly isUp: () => boolean
  /** Returns everything that it holds. `then` is called when the daemons have read that, or after a while. */
  readonly close: (then: () => void) => void
}

/** Milliseconds between two rotations of connections, and for which a closed connection waits for its daemon. */
const waits = { turn: 50, close: 2000 }

/** The consumer's owner. */
interface Owner {
  readonly queue: string
  readonly onDelivery: (delivery: Delivery.Delivery) => void
  readonly onReconnect: (isGone: (delivery: Delivery.Delivery) => boolean) => void
  /** When a message that this process has requeued may be redelivered, in milliseconds since the epoch. */
  readonly takeDue: (receipt: Session.Receipt) => number | undefined
  /** A connection opened or closed. */
  readonly onChange: () => void
}

/** When the delay is over by the daemon's clock, the publisher's does not matter. */
const notBefore = (metadata: Metadata.Metadata, { parcel: { deferred }, timestamp }: Message, now: number): number =>
  deferred !== undefined && timestamp + deferred <= now ? 0 : metadata.notBefore

/** The connection to one daemon, session after session. */
interface Line {
  readonly current: () => Session.Session | undefined
  readonly close: (then: () => void) => void
}

const openLine = (
  machine: Machine,
  server: Server,
  settings: Settings,
  { onChange, onDelivery, onReconnect, queue, takeDue }: Owner,
  credit: Credit.Credit,
  onWaiting: () => void
): Line => {
  let last: Session.Session | undefined
  let current: Session.Session | undefined
  let ended: (() => void) | undefined

  const receive = (session: Session.Session, message: Message): void => {
    const { attempts: count, delivery: number, id, parcel, timestamp: sentAt } = message
    if (ended !== undefined) return session.up({ _tag: "Req", id, of: number, delay: 0 })
    const receipt = session.add(message)
    const told = { delivery: number, count, receipt, sentAt, id: `lossy-${id}` }
    const delivery = Parcels.toDelivery(parcel, machine, told)
    const due = takeDue(receipt) ?? notBefore(delivery.metadata, message, machine.wallClock())
    onDelivery({ ...delivery, metadata: { ...delivery.metadata, notBefore: due } })
  }

  const begin = (session: Session.Session): void => {
    const lost = last
    if (lost !== undefined) {
      credit.leave(lost)
      onReconnect((delivery) => Session.receiptOf(delivery).session === lost)
    }
    last = session
    session.up({ _tag: "Sub", queue })
    credit.join(session)
    onChange()
  }

  const link = Link.keep(machine, server, `${machine.name} consume ${queue} ${server.name}`, (connection) => {
    const session = Session.make(machine, server, connection, settings, credit.settled)
    current = session
    machine.after(0, () => begin(session))
    return {
      onDown: (frame: Down) => {
        if (frame._tag === "Message") receive(session, frame)
        else if (frame._tag === "NotInFlight") session.lose(frame.id)
        else ended?.()
      },
      onWaiting,
      onBroken: () => {
        current = undefined
        ended?.()
        credit.distribute()
        onChange()
      }
    }
  })

  return {
    current: () => current,
    close: (then) => {
      link.retire()
      const connection = link.current()
      if (current === undefined || connection === undefined) return then()
      let isOver = false
      ended = () => {
        if (isOver) return
        isOver = true
        connection.cut(true)
        then()
      }
      current.giveBack()
      current.up({ _tag: "Cls" })
      machine.after(waits.close, ended)
    }
  }
}

/** Opens a connection to each daemon. */
export const open = (machine: Machine, servers: ReadonlyArray<Server>, settings: Settings, owner: Owner): Consumer => {
  const credit = Credit.make()
  let isClosing = false
  let isTurning = false

  /** Connections rotate while messages wait for one without room. */
  const onWaiting = (): void => {
    if (isTurning || isClosing || servers.length === 1) return
    isTurning = true
    machine.after(waits.turn, () => {
      isTurning = false
      credit.turn()
      if (servers.some(({ isWaiting }) => isWaiting(owner.queue))) onWaiting()
    })
  }

  const lines = servers.map((server) => openLine(machine, server, settings, owner, credit, onWaiting))
  return {
    credit: credit.set,
    isUp: () => lines.some(({ current }) => current() !== undefined),
    close: (then) => {
      isClosing = true
      credit.set(0)
      let open = lines.length
      for (const line of lines) {
        line.close(() => {
          if (--open === 0) then()
        })
      }
    }
  }
}
