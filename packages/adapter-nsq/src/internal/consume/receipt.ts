/** Receipts of deliveries. Only the session that received a delivery can settle it: nsqd refuses others. */
import type { Delivery, Settlement } from "@requeue/core/port"
import type { Live } from "../connect/connection.ts"
import type { Node } from "../connect/nodes.ts"
import type { Queue } from "../names.ts"
import type { Frame } from "./toDelivery.ts"

/** The receipt of a delivery. Times are monotonic milliseconds. A class: see `ShortList`. */
export class Receipt {
  readonly session: SettlingSession
  /** The id of the message, unique within its topic only. */
  readonly id: string
  /** The unique name of the copy, the same at each address of its nsqd; see `Frame`. */
  readonly name: string
  /** How often nsqd has delivered this copy. */
  readonly deliveries: number
  /** The nonce of a message that was stored on two nsqd; see `Wire`. */
  readonly nonce: string | undefined
  readonly receivedAt: number
  /** The end of the lease, unless it is extended. nsqd takes the message back soon afterwards. */
  leaseEnds: number

  constructor(
    session: SettlingSession,
    { attempts, id, name }: Pick<Frame, "attempts" | "id" | "name">,
    nonce: string | undefined,
    receivedAt: number,
    leaseEnds: number
  ) {
    this.session = session
    this.id = id
    this.name = name
    this.deliveries = attempts
    this.nonce = nonce
    this.receivedAt = receivedAt
    this.leaseEnds = leaseEnds
  }
}

type Settled = Pick<Delivery.Delivery, "attempts" | "metadata">

/** A settled delivery, which does not keep its body. A class: see `ShortList`. */
class Bodiless implements Settled {
  readonly attempts: number
  readonly metadata: Settled["metadata"]

  constructor({ attempts, metadata }: Settled) {
    this.attempts = attempts
    this.metadata = metadata
  }
}

/** The settlement of a command; reported if nsqd refuses the command. A class: see `ShortList`. */
export class Answered {
  readonly delivery: Settled
  readonly settlement: Settlement.Settlement["_tag"]

  constructor(delivery: Settled, settlement: Settlement.Settlement["_tag"]) {
    this.delivery = new Bodiless(delivery)
    this.settlement = settlement
  }
}

/** Called when a command has left this process, or with an error. */
export type Written = (error: Error | null | undefined) => void

/** The part of a session that settles its deliveries. */
export interface SettlingSession extends Live {
  readonly node: Node
  readonly topic: Queue
  readonly isOpen: () => boolean
  /**
   * Takes a delivery to settle it; `false` if it is no longer held: it was already settled or taken, its lease or
   * connection is lost, or nsqd has redelivered the message.
   */
  readonly take: (receipt: Receipt) => boolean
  /** Holds a taken delivery again; `false` if it was lost in the meantime. */
  readonly untake: (receipt: Receipt) => boolean
  /**
   * Extends a delivery's lease; `false` if it is lost. A lost delivery counts against the credit until `take`, which
   * must be called once the core knows.
   */
  readonly touch: (receipt: Receipt) => boolean
  /** Writes the command that settles a taken delivery. `answered` is the settlement that the core asked for. */
  readonly answer: (command: string, written: Written, answered?: Answered) => void
}

/** Returns the receipt of a delivery. */
export const receiptOf = ({ receipt }: Delivery.Delivery): Receipt => receipt as Receipt // The core returns it unchanged.
