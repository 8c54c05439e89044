/** Receipts of deliveries, and the interface of their settler. */
import type { Delivery } from "@requeue/core/port"
import type * as Client from "../client.ts"
import * as Wire from "../wire.ts"
import type { Consumer, Credit } from "./credit.ts"
import { identify } from "./identity.ts"
import type * as Unacknowledged from "./unacknowledged.ts"

/** The data that settling a delivery needs. */
export interface Receipt extends Unacknowledged.Member {
  readonly settler: Settler
  readonly consumer: Consumer
  /** The message from the driver. */
  readonly message: Client.Incoming
  /** How often this copy was returned to the queue, by the server's count. */
  readonly returns: number
  /** The same for the copies before this one; `undefined` if it replaces none. */
  readonly formerReturns: number | undefined
  /** Whether browsing may have caused these returns, which then use up no attempts. */
  readonly isUncounted: boolean
  /** The name of this copy once it was read; `null` for a foreign message. */
  name: string | null | undefined
}

/** A delivery of this adapter. */
export interface Received extends Delivery.Delivery {
  readonly receipt: Receipt
}

/** Settles the deliveries of one channel. On another channel a delivery tag means another delivery, or none. */
export interface Settler {
  readonly isOpen: () => boolean
  readonly barrier: Credit["barrier"]
  /** Must be called for each delivery that arrives. */
  readonly add: (receipt: Receipt) => void
  /** The unsettled deliveries of a consumer. */
  readonly unsettled: (consumer: Consumer) => ReadonlyArray<Receipt>
  /** Claims a delivery for settling; false if the channel is closed or the delivery is already claimed. */
  readonly claim: (receipt: Receipt) => boolean
  /** Ends a claim, so the delivery is unsettled again. */
  readonly unclaim: (receipt: Receipt) => void
  /**
   * Acks claimed deliveries, the oldest of them in one frame; false if the channel is closed. Acks of deliveries after
   * a message whose copy is not stored yet wait for it for a moment.
   */
  readonly ack: (receipts: ReadonlyArray<Receipt>) => boolean
  /** Writes postponed acks; from now on, none is postponed. */
  readonly flush: () => void
  /** Resolves when no delivery is claimed: each copy is stored or has failed, and returns are written. */
  readonly copied: () => Promise<void>
  /** Requeues a claimed delivery at the end of the job and after lowered credit; false if the channel is closed. */
  readonly requeue: (receipt: Receipt, how: "Reject" | "Nack") => boolean
}

/** Returns the receipt of a delivery that core passes back. */
export const receiptOf = ({ receipt }: Delivery.Delivery): Receipt => receipt as Receipt // Core passes it back unchanged.

/**
 * Returns the properties that a copy of a delivery must keep. They are read on demand, because few deliveries become
 * copies.
 */
export const originalOf = ({ message }: Receipt): Client.Properties => Wire.propertiesOf(message)

/** Returns the name of a delivered copy; `undefined` for a foreign message. */
export const identityOf = (delivery: Delivery.Delivery): string | undefined => {
  const receipt = receiptOf(delivery)
  if (receipt.name === undefined) receipt.name = identify(delivery.body, receipt.message.properties) ?? null
  return receipt.name ?? undefined
}
