/** The deliveries in our hands, from receipt to settlement, and how long each is still ours. */
import type { Delivery } from "@requeue/core/adapter-kit"
import type { MessageAttributeValue } from "../client.ts"
import * as Wire from "../wire.ts"

/** What settles a delivery. */
export interface Receipt {
  readonly handle: string
  readonly messageId: string
  /** Of a FIFO queue. */
  readonly group: string | undefined
  /** How often SQS has handed out this copy. */
  readonly receives: number
  readonly attributes: Readonly<Record<string, MessageAttributeValue>>
  /** Monotonic milliseconds. */
  readonly receivedAt: number
  /** Monotonic milliseconds; after that, SQS hands the message to somebody else. */
  leaseEnds: number
  /** An extension was asked for, and nobody knows whether it came or comes to pass. */
  isUnsure: boolean
  /** Settled, or being settled. */
  isTaken: boolean
}

export const receiptOf = ({ receipt }: Delivery.Delivery): Receipt => receipt as Receipt

export const isExpired = ({ leaseEnds, receivedAt }: Receipt, now: number): boolean =>
  now >= Math.min(leaseEnds, receivedAt + Wire.longestVisibility)
