/** Receives the messages of a queue from all daemons, and holds them until they are settled or lost. */
import type { Delivery, Metadata } from "@requeue/core/adapter-kit"
import type { Machine } from "../world/Machine.ts"
import * as Parcels from "../world/Parcels.ts"
import * as Credit from "./Credit.ts"
import * as Link from "./Link.ts"
import type { Down, Server, Settings, Up } from "./Server.ts"

/** The receipt of a delivery. Times are monotonic milliseconds. */
export interface Receipt {
  readonly number: number
  readonly session: Session
  /** The id of the message, the same at each of its deliveries. */
  readonly id: number
  /** How often the daemon has delivered this copy. */
  readonly deliveries: number
  readonly receivedAt: number
  leaseEnds: number
}

/** One connection to a daemon, and what it has delivered. */
export interface Session extends Credit.Member {
  readonly server: Server
  readonly connection: Link.Opened
  /** What is neither settled, nor taken for settling, nor lost, by the messages' ids. */
  readonly receipts: Map<number, Receipt>
}

/** A consumer of one queue. */
export interface Consumer {
  readonly credit: (limit: number) => void
  readonly isUp: () => boolean
  /** Takes a delivery for settling; false when it is not held any more. */
  readonly take: (receipt: Receipt) => boolean
  /** Holds one again that was taken; false when it was lost meanwhile. */
  readonly untake: (receipt: Receipt) => boolean
  /** Settles a delivery that was taken; false when its connection is lost. */
  readonly answer: (receipt: Receipt, frame: Up) => boolean
  /** Extends a lease; false when the delivery is not held any more. */
  readonly touch: (receipt: Receipt) => boolean
  /** Gives back what it holds. `then` is called when the daemons have read that, or after a while. */
  readonly close: (then: () => void) => void
}

/** Milliseconds until another connection has its turn, and those that a closing connection waits for its daemon. */
const waits = { turn: 50, close: 2000 }

interface Options {
  readonly queue: string
  readonly onDelivery: (delivery: Delivery.Delivery) => void
  readonly onReconnect: (isGone: (delivery: Delivery.Delivery) => boolean) => void
  /** When a message may come that this process has requeued, in milliseconds since the epoch. */
  readonly takeDue: (receipt: Receipt) => number | undefined
  /** A connection came or went. */
  readonly onChange: () => void
}

/** The receipt of a delivery that a consumer has received. */
export const receiptOf = ({ receipt }: Delivery.Delivery): Receipt => receipt as Receipt // Consumers make all of them.

/** When the delay is over by the daemon's clock, the publisher's is not asked. */
const notBefore = (
  metadata: Metadata.Metadata,
  { parcel: { deferred }, timestamp }: Extract<Down, { _tag: "Message" }>,
  now: number
): number => (deferred !== undefined && timestamp + deferred <= now ? 0 : metadata.notBefore)

/** Opens a connection to each daemon. */
export const open = (
  machine: Machine,
  servers: ReadonlyArray<Server>,
  { lease, longestLease }: Settings,
  { onChange, onDelivery, onReconnect, queue, takeDue }: Options
): Consumer => {
  const credit = Credit.make()
  const closing = new Map<Session, () => void>()
  let isClosing = false

  const isLost = ({ leaseEnds, session }: Receipt): boolean => !session.isOpen() || machine.monotonic() >= leaseEnds

  const holds = (receipt: Receipt): boolean => {
    const { id, session } = receipt
    if (session.receipts.get(id) !== receipt) return false
    if (!isLost(receipt)) return true
    session.receipts.delete(id)
    credit.settled(session)
    return false
  }

  const receive = (session: Session, frame: Extract<Down, { _tag: "Message" }>): void => {
    const { attempts: deliveries, delivery: number, id, parcel, timestamp: sentAt } = frame
    if (isClosing) return session.connection.up({ _tag: "Req", id, of: number, delay: 0 })
    const receivedAt = machine.monotonic()
    const receipt: Receipt = { number, session, id, deliveries, receivedAt, leaseEnds: receivedAt + lease }
    // A message whose lease has ended may be delivered again, in the place of its earlier delivery.
    if (!session.receipts.has(id)) session.held++
    session.receipts.set(id, receipt)
    const told = { delivery: number, count: deliveries, receipt, sentAt, id: `lossy-${id}` }
    const delivery = Parcels.toDelivery(parcel, machine, told)
    const due = takeDue(receipt) ?? notBefore(delivery.metadata, frame, machine.wallClock())
    onDelivery({ ...delivery, metadata: { ...delivery.metadata, notBefore: due } })
  }

  const onDown = (session: Session, frame: Down): void => {
    if (frame._tag === "Message") return receive(session, frame)
    if (frame._tag === "NotInFlight" && session.receipts.delete(frame.id)) return credit.settled(session)
    if (frame._tag === "Ok") closing.get(session)?.()
  }

  let isTurning = false
  /** Connections take turns while messages wait for one that has no room. */
  const onWaiting = (): void => {
    if (isTurning || isClosing || servers.length === 1) return
    isTurning = true
    machine.after(waits.turn, () => {
      isTurning = false
      credit.turn()
      if (servers.some(({ isWaiting }) => isWaiting(queue))) onWaiting()
    })
  }

  const links = servers.map((server) => {
    let last: Session | undefined
    let current: Session | undefined
    const link = Link.keep(machine, server, `${machine.name} consume ${queue} ${server.name}`, (connection) => {
      const session: Session = {
        server,
        connection,
        receipts: new Map(),
        isOpen: connection.isOpen,
        rdy: (count) => connection.up({ _tag: "Rdy", count }),
        held: 0,
        share: 0
      }
      current = session
      machine.after(0, () => begin(session))
      return {
        onDown: (frame: Down) => onDown(session, frame),
        onWaiting,
        onBroken: () => {
          current = undefined
          closing.get(session)?.()
          credit.distribute()
          onChange()
        }
      }
    })
    const begin = (session: Session): void => {
      const lost = last
      if (lost !== undefined) {
        credit.leave(lost)
        onReconnect((delivery) => receiptOf(delivery).session === lost)
      }
      last = session
      session.connection.up({ _tag: "Sub", queue })
      credit.join(session)
      onChange()
    }
    return { retire: link.retire, current: () => current }
  })

  return {
    credit: credit.set,
    isUp: () => links.some(({ current }) => current() !== undefined),
    take: (receipt) => holds(receipt) && receipt.session.receipts.delete(receipt.id),
    untake: (receipt) => {
      const { id, session } = receipt
      const isOurs = !isLost(receipt) && !session.receipts.has(id)
      if (isOurs) session.receipts.set(id, receipt)
      else credit.settled(session)
      return isOurs
    },
    answer: ({ session }, frame) => {
      const isOpen = session.isOpen()
      session.connection.up(frame)
      credit.settled(session)
      return isOpen
    },
    touch: (receipt) => {
      if (!holds(receipt)) return false
      // A daemon extends no lease beyond its longest time, and says nothing of that.
      receipt.leaseEnds = Math.min(machine.monotonic() + lease, receipt.receivedAt + longestLease)
      receipt.session.connection.up({ _tag: "Touch", id: receipt.id })
      return true
    },
    close: (then) => {
      isClosing = true
      credit.set(0)
      let open = 1
      const closed = (): void => {
        if (--open === 0) then()
      }
      for (const { current, retire } of links) {
        retire()
        const session = current()
        if (session === undefined) continue
        open++
        const end = (): void => {
          if (!closing.delete(session)) return
          session.connection.cut(true)
          closed()
        }
        closing.set(session, end)
        for (const { id, number } of session.receipts.values()) {
          session.connection.up({ _tag: "Req", id, of: number, delay: 0 })
        }
        session.connection.up({ _tag: "Cls" })
        machine.after(waits.close, end)
      }
      closed()
    }
  }
}
