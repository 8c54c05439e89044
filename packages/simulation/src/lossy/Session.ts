/** The deliveries of one connection to a daemon. Held ones are neither settled, nor being settled, nor lost. */
import type { Delivery } from "@requeue/core/port"
import type { Machine } from "../world/Machine.ts"
import type { Member } from "./Credit.ts"
import type { Message, Opened, Settings, Up } from "./Protocol.ts"
import type { Server } from "./Server.ts"

/** The receipt of a delivery. Times are monotonic milliseconds. */
export interface Receipt {
  readonly number: number
  readonly session: Session
  /** The id of the message, the same at each delivery. */
  readonly id: number
  /** How often the daemon has delivered this copy. */
  readonly deliveries: number
  readonly receivedAt: number
  leaseEnds: number
}

/** The receipt of a delivery that a consumer has received. */
export const receiptOf = ({ receipt }: Delivery.Delivery): Receipt => receipt as Receipt // consumers make all of them

/** Finishes a delivery that is held, unseen by the core. */
export const finish = (receipt: Receipt): void => {
  const { id, number: of, session } = receipt
  if (session.take(receipt)) session.answer({ _tag: "Fin", id, of })
}

/** One connection. */
export interface Session extends Member {
  readonly server: Server
  readonly up: (frame: Up) => void
  /** Holds a message that has arrived, instead of an earlier delivery of it. */
  readonly add: (message: Message) => Receipt
  /** Takes a delivery for settling; false if it is no longer held. */
  readonly take: (receipt: Receipt) => boolean
  /** Holds a taken delivery again; false if it was lost meanwhile. */
  readonly untake: (receipt: Receipt) => boolean
  /** Settles a taken delivery; false if the connection is lost. */
  readonly answer: (frame: Up) => boolean
  /** Extends a lease; false if the delivery is no longer held. */
  readonly touch: (receipt: Receipt) => boolean
  /** Loses the delivery of a message, if it is held. */
  readonly lose: (id: number) => void
  /** Returns everything that is held. */
  readonly giveBack: () => void
}

/** A connection that has delivered nothing. `onSettled` is called when a delivery no longer counts against the credit. */
export const make = (
  machine: Machine,
  server: Server,
  { isOpen, up }: Opened,
  { lease, longestLease }: Settings,
  onSettled: (session: Session) => void
): Session => {
  const receipts = new Map<number, Receipt>()
  const isLost = ({ leaseEnds }: Receipt): boolean => !isOpen() || machine.monotonic() >= leaseEnds

  const holds = (receipt: Receipt): boolean => {
    if (receipts.get(receipt.id) !== receipt) return false
    if (isLost(receipt)) session.lose(receipt.id)
    return receipts.has(receipt.id)
  }

  const session: Session = {
    server,
    up,
    isOpen,
    rdy: (count) => up({ _tag: "Rdy", count }),
    held: 0,
    share: 0,
    add: ({ attempts: deliveries, delivery: number, id }) => {
      const receivedAt = machine.monotonic()
      const receipt: Receipt = { number, session, id, deliveries, receivedAt, leaseEnds: receivedAt + lease }
      if (!receipts.has(id)) session.held++
      receipts.set(id, receipt)
      return receipt
    },
    take: (receipt) => holds(receipt) && receipts.delete(receipt.id),
    untake: (receipt) => {
      const isOurs = !isLost(receipt) && !receipts.has(receipt.id)
      if (isOurs) receipts.set(receipt.id, receipt)
      else onSettled(session)
      return isOurs
    },
    answer: (frame) => {
      up(frame)
      onSettled(session)
      return isOpen()
    },
    touch: (receipt) => {
      if (!holds(receipt)) return false
      // A daemon silently extends no lease beyond its maximum time.
      receipt.leaseEnds = Math.min(machine.monotonic() + lease, receipt.receivedAt + longestLease)
      up({ _tag: "Touch", id: receipt.id })
      return true
    },
    lose: (id) => {
      if (receipts.delete(id)) onSettled(session)
    },
    giveBack: () => {
      for (const { id, number: of } of receipts.values()) up({ _tag: "Req", id, of, delay: 0 })
    }
  }
  return session
}
