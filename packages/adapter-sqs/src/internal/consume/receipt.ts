/** The receipt of a delivery: by what it is settled, and until when it is ours. */
import type { Bag, BrokerError, Delivery } from "@requeue/core/port"
import type { Message, MessageAttributeValue } from "../client.ts"
import * as Limits from "../limits.ts"

/** A receipt handle, and facts of the delivery that its settlement depends on. */
export interface Receipt extends Bag.Member {
  /** The receipt handle of SQS. */
  readonly handle: string
  readonly messageId: string
  /** The message group; `undefined` on a standard queue. */
  readonly group: string | undefined
  /** How often SQS has delivered this copy, this time included. */
  readonly receives: number
  /** Whether only this process knows how many of them were in the queue that SQS moved the message from. */
  readonly countsHere: boolean
  readonly attributes: Readonly<Record<string, MessageAttributeValue>>
  /** Monotonic milliseconds. */
  readonly receivedAt: number
  /** Monotonic milliseconds; after that, SQS delivers the message to somebody else. */
  leaseEnds: number
  /** The error of the last extension of the lease, or of a call that hides the message: it may still take effect. */
  leaseError: BrokerError.BrokerError | undefined
  /** Whether a call that hides the message got no answer: it may be in the queue again, or with somebody else. */
  isLeft: boolean
  /** Whether it is settled, or is being settled. */
  isSettling: boolean
  /**
   * Set where a retry or a dead letter has failed: until when the message must not come again, in monotonic milliseconds; 0
   * where no delay was asked.
   */
  heldUntil: number | undefined
  /** The delivery itself, where it is in flight. */
  delivery: Delivery.Delivery | undefined
}

/** The receipt of a message that was just received. Times are monotonic milliseconds. */
export const make = (
  message: Message,
  {
    countsHere,
    fifo,
    leaseEnds,
    receivedAt
  }: Pick<Receipt, "countsHere" | "leaseEnds" | "receivedAt"> & {
    readonly fifo: boolean
  }
): Receipt => ({
  handle: message.ReceiptHandle ?? "",
  messageId: message.MessageId ?? "",
  group: fifo ? message.Attributes?.MessageGroupId : undefined,
  receives: receives(message),
  countsHere,
  attributes: message.MessageAttributes ?? {},
  receivedAt,
  leaseEnds,
  leaseError: undefined,
  isLeft: false,
  isSettling: false,
  heldUntil: undefined,
  delivery: undefined,
  place: -1
})

/** How often SQS has delivered this copy of a message, this time included; 1 where it does not say. */
export const receives = ({ Attributes: { ApproximateReceiveCount: count } = {} }: Message): number => {
  const number = Number(count ?? 1)
  return Number.isSafeInteger(number) && number > 0 ? number : 1
}

/** The receipt of a delivery of this adapter. */
export const receiptOf = ({ receipt }: Pick<Delivery.Delivery, "receipt">): Receipt => receipt as Receipt // made by us

/** SQS's own id of the message, which no producer chooses and every copy has another one; `undefined` where it has none. */
export const nameOf = ({ messageId }: Receipt): string | undefined => (messageId === "" ? undefined : messageId)

/** Whether the lease of a delivery has ended. `now` is in monotonic milliseconds. */
export const isExpired = ({ leaseEnds, receivedAt }: Pick<Receipt, "leaseEnds" | "receivedAt">, now: number): boolean =>
  now >= Math.min(leaseEnds, receivedAt + Limits.visibility)
