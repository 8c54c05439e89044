/** Receipts of deliveries, and what a settler of them does. */
import type { Delivery } from "@requeue/core/port"
import type * as Client from "../client.ts"
import * as Wire from "../wire.ts"
import type { Consumer, Credit } from "./credit.ts"
import { identify } from "./identity.ts"
import type * as Unacknowledged from "./unacknowledged.ts"

/** Everything that settling a delivery takes. */
export interface Receipt extends Unacknowledged.Member {
  readonly settler: Settler
  readonly consumer: Consumer
  /** The message as the driver has given it. */
  readonly message: Client.Incoming
  /** How often the server counts this copy as returned. */
  readonly returns: number
  /** The same for the copies that this one has replaced; `undefined` for one that has replaced none. */
  readonly formerReturns: number | undefined
  /** Whether its returns may be those of browsers, and use up no attempts. */
  readonly isUncounted: boolean
  /** The name of this copy, once somebody has asked for it; `null` for a foreign message. */
  name: string | null | undefined
}

/** A delivery of this adapter. */
export interface Received extends Delivery.Delivery {
  readonly receipt: Receipt
}

/** Settles the deliveries of one channel, and of no other: a delivery tag means something else there, or nothing. */
export interface Settler {
  readonly isOpen: () => boolean
  readonly barrier: Credit["barrier"]
  /** A delivery has arrived. */
  readonly add: (receipt: Receipt) => void
  /** The unsettled deliveries of a consumer. */
  readonly unsettled: (consumer: Consumer) => ReadonlyArray<Receipt>
  /** Claims a delivery for settling; false when the channel has gone, or the delivery was claimed before. */
  readonly claim: (receipt: Receipt) => boolean
  /** Ends a claim; the delivery is unsettled. */
  readonly unclaim: (receipt: Receipt) => void
  /**
   * Acknowledges claimed deliveries, the oldest of them in one frame; false when the channel has gone. What came after a
   * message whose copy is not stored yet waits for that, for a moment.
   */
  readonly ack: (receipts: ReadonlyArray<Receipt>) => boolean
  /** Writes acknowledgements that wait; from now on, none does. */
  readonly flush: () => void
  /** Resolves when no delivery is claimed: whatever was to be copied is stored, or is not, and returns are written. */
  readonly copied: () => Promise<void>
  /** Puts a claimed delivery back into its queue, at the end of the job and after lowered credit; false when the channel has gone. */
  readonly requeue: (receipt: Receipt, how: "Reject" | "Nack") => boolean
}

/** The receipt of a delivery that comes back from the core. */
export const receiptOf = ({ receipt }: Delivery.Delivery): Receipt => receipt as Receipt // The core returns our own.

/** The properties that a copy of a delivery must keep. Few deliveries become copies, so that they are read for those. */
export const originalOf = ({ message }: Receipt): Client.Properties => Wire.propertiesOf(message)

/** The name of a delivered copy; `undefined` for a foreign message. */
export const identityOf = (delivery: Delivery.Delivery): string | undefined => {
  const receipt = receiptOf(delivery)
  if (receipt.name === undefined) receipt.name = identify(delivery.body, receipt.message.properties) ?? null
  return receipt.name ?? undefined
}
