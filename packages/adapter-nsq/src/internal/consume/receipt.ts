/** Receipts of deliveries. A delivery is settled in the session that received it, or not at all: nsqd refuses others. */
import type { Delivery } from "@requeue/core/adapter-kit"
import type { Live } from "../connect/connection.ts"
import type { Node } from "../connect/nodes.ts"
import type { Queue } from "../names.ts"

/** The receipt of a delivery. */
export interface Receipt {
  readonly session: SettlingSession
  /** The id of the message, which nsqd gives again in another topic. */
  readonly id: string
  /** How often nsqd has delivered this copy. */
  readonly deliveries: number
}

/** Called when a command has left this process, or with an error when it cannot. */
export type Written = (error: Error | null | undefined) => void

/** The receipts that are not settled. */
interface Unsettled {
  /** Takes a delivery for settling; `false` when it has been settled or taken, or nsqd has delivered the message again. */
  readonly take: (receipt: Receipt) => boolean
  /** Gives back a delivery that was taken, unsettled. */
  readonly untake: (receipt: Receipt) => void
  /** Whether `take` would succeed. */
  readonly holds: (receipt: Receipt) => boolean
}

/** The part of a session that settles its deliveries. */
export interface SettlingSession extends Live, Unsettled {
  readonly node: Node
  readonly topic: Queue
  readonly isOpen: () => boolean
  /** Writes the command that settles a delivery that was taken. */
  readonly answer: (command: string, written: Written) => void
  /** Writes a command that leaves its delivery unsettled. */
  readonly write: (command: string, written: Written) => void
  /** Forgets a delivery that cannot be settled any more. */
  readonly drop: (receipt: Receipt) => void
}

/** No receipts. Those that are added can be found by the id of their message. */
export const makeUnsettled = () => {
  const byId = new Map<string, Receipt>()
  const unsettled: Unsettled = {
    take: (receipt) => byId.get(receipt.id) === receipt && byId.delete(receipt.id),
    untake: (receipt) => {
      if (!byId.has(receipt.id)) byId.set(receipt.id, receipt)
    },
    holds: (receipt) => byId.get(receipt.id) === receipt
  }
  return { ...unsettled, byId }
}

/** The receipt that a session has put into a delivery. */
export const receiptOf = ({ receipt }: Delivery.Delivery): Receipt => receipt as Receipt // The core returns it unchanged.
