/** Receipts of deliveries. A delivery is settled in the session that received it, or not at all: nsqd refuses others. */
import type { Delivery, Settlement } from "@requeue/core/port"
import type { Live } from "../connect/connection.ts"
import type { Node } from "../connect/nodes.ts"
import type { Queue } from "../names.ts"

/** The receipt of a delivery. Times are monotonic milliseconds. */
export interface Receipt {
  readonly session: SettlingSession
  /** The id of the message, which nsqd gives again in another topic. */
  readonly id: string
  /** How often nsqd has delivered this copy. */
  readonly deliveries: number
  /** The nonce of a message that was stored on two nsqd; see `Wire`. */
  readonly nonce: string | undefined
  readonly receivedAt: number
  /** The end of the lease, unless it is extended. nsqd takes the message back soon afterwards. */
  leaseEnds: number
}

/** The settlement that a command carries out; told where nsqd refuses it. */
export interface Answered {
  readonly delivery: Pick<Delivery.Delivery, "attempts" | "metadata">
  readonly settlement: Settlement.Settlement["_tag"]
}

/** Called when a command has left this process, or with an error when it cannot. */
export type Written = (error: Error | null | undefined) => void

/** The part of a session that settles its deliveries. */
export interface SettlingSession extends Live {
  readonly node: Node
  readonly topic: Queue
  readonly isOpen: () => boolean
  /**
   * Takes a delivery for settling; `false` when it is not held any more: it has been settled or taken, its lease or its
   * connection is lost, or nsqd has delivered the message again.
   */
  readonly take: (receipt: Receipt) => boolean
  /** Holds a delivery again that was taken; `false` when it was lost meanwhile. */
  readonly untake: (receipt: Receipt) => boolean
  /**
   * Extends the lease of a delivery; `false` when it is lost. It counts against the credit until `take`, which must be called
   * once the core is told.
   */
  readonly touch: (receipt: Receipt) => boolean
  /** Writes the command that settles a delivery that was taken. A settlement that the core was told of is `answered`. */
  readonly answer: (command: string, written: Written, answered?: Answered) => void
}

/** The receipt that a session has put into a delivery. */
export const receiptOf = ({ receipt }: Delivery.Delivery): Receipt => receipt as Receipt // The core returns it unchanged.

/**
 * A text that names the copy of a message that was delivered. nsqd gives each message of a topic an id, and never the same
 * one again.
 */
export const nameOf = ({ id, session: { node, topic } }: Pick<Receipt, "id" | "session">): string =>
  `${node.name} ${topic.topic} ${id}`
