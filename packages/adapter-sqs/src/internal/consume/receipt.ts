/** The receipt of a delivery: its handle and its lease. */
import type { Bag, BrokerError, Delivery } from "@requeue/core/port"
import type { Message, MessageAttributeValue } from "../client.ts"
import * as Limits from "../limits.ts"

/** A receipt handle, and the facts on which the settlement depends. */
export interface Receipt extends Bag.Member {
  /** The receipt handle of SQS. */
  readonly handle: string
  readonly messageId: string
  /** The message group; `undefined` on a standard queue. */
  readonly group: string | undefined
  /** How often SQS has delivered this copy, this time included. */
  readonly receives: number
  /** Whether only this process knows how many of them were in the queue from which SQS moved the message. */
  readonly countsHere: boolean
  readonly attributes: Readonly<Record<string, MessageAttributeValue>>
  /** Monotonic milliseconds. */
  readonly receivedAt: number
  /** Monotonic milliseconds; SQS then redelivers the message. */
  leaseEnds: number
  /** The error of the last lease extension, or of a call that hides the message: the call may still take effect. */
  leaseError: BrokerError.BrokerError | undefined
  /**
   * Whether a call that hides the message got no answer: the message may be in the queue again, or with another
   * consumer.
   */
  isLeft: boolean
  /** Whether it is settled, or is being settled. */
  isSettling: boolean
  /**
   * Set after a failed settlement that is not a release: when the message may be redelivered at the earliest, in
   * monotonic milliseconds; 0 for no delay.
   */
  heldUntil: number | undefined
  /** The delivery, while it is in flight. */
  delivery: Delivery.Delivery | undefined
}

/** Makes the receipt of a new message. Times are monotonic milliseconds. */
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

/** Returns how often SQS has delivered this copy, this time included; 1 if SQS does not report it. */
export const receives = ({ Attributes: { ApproximateReceiveCount: count } = {} }: Message): number => {
  const number = Number(count ?? 1)
  return Number.isSafeInteger(number) && number > 0 ? number : 1
}

/** Returns the receipt of a delivery. */
export const receiptOf = ({ receipt }: Pick<Delivery.Delivery, "receipt">): Receipt => receipt as Receipt // made by us

/** Returns SQS's id of the message, unique for each copy; `undefined` if missing. */
export const nameOf = ({ messageId }: Receipt): string | undefined => (messageId === "" ? undefined : messageId)

/** Whether the lease of a delivery has ended. `now` is in monotonic milliseconds. */
export const isExpired = ({ leaseEnds, receivedAt }: Pick<Receipt, "leaseEnds" | "receivedAt">, now: number): boolean =>
  now >= Math.min(leaseEnds, receivedAt + Limits.visibility)
