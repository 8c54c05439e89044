/**
 * Receipt handles, and what they still do.
 *
 * | rule | source |
 * | --- | --- |
 * | a handle of another queue, or that SQS has not made, is invalid | https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_DeleteMessage.html |
 * | a second delete succeeds; the visibility of a deleted message cannot be changed | test_change_visibility_on_deleted_message_raises_invalid_parameter_value of LocalStack |
 * | a handle of a FIFO queue ends with its visibility timeout | test_fifo_receive_message_with_expired_receipt_handle of LocalStack |
 * | a handle of a standard queue deletes and hides its message after that | test_delete_after_visibility_timeout and test_change_message_visibility_after_visibility_timeout_expiration of LocalStack |
 * | after the next receive of its message, the old handle succeeds, and may do nothing | https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_DeleteMessage.html |
 * | a deleted message of a standard queue may be received again | same page |
 * | a message is hidden for 12 hours from its receive, at most | https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-visibility-timeout.html |
 */
import type * as Api from "./Api.ts"
import { type AwsError, invalidHandle, invalidValue } from "./AwsError.ts"
import type { Message } from "./Message.ts"
import type { Env, Queue, Receipt } from "./Queue.ts"

/** All receipts. */
export interface Receipts {
  /** Delivers a message, and hides it for this many seconds. */
  readonly give: (queue: Queue, message: Message, seconds: number, client: string | undefined) => Receipt
  /** Hides a message for this many seconds, by its receipt. */
  readonly hide: (receipt: Receipt, seconds: number, client: string | undefined, entry?: Api.Entry) => void
  readonly remove: (queue: Queue, entry: Api.Entry) => AwsError | undefined
  readonly change: (queue: Queue, entry: Api.Entry, client: string | undefined) => AwsError | undefined
}

/** Milliseconds of the longest visibility from the receive. */
const longest = 43_200_000

/** The handle of a delivery. */
const handleOf = (delivery: number): string => `AQEB${delivery}`

/** The number of the delivery that a handle is for. */
export const deliveryOf = (handle: string): number => Number(handle.slice(handleOf(0).length - 1))

/** Makes no receipts yet. */
export const make = ({ happens, host, listen, number, settings, wake }: Env): Receipts => {
  const receipts = new Map<string, Receipt>()

  /** Returns the receipt of a handle, or why SQS refuses it. */
  const find = (queue: Queue, handle: string): Receipt | AwsError => {
    const receipt = receipts.get(handle)
    return receipt?.queue === queue ? receipt : invalidHandle(handle)
  }

  const isExpired = ({ until }: Receipt): boolean => until <= host.now()
  const expired = (handle: string): AwsError => invalidValue("ReceiptHandle", handle, "The receipt handle has expired.")

  /** Whether a handle does nothing: its message was received again since. */
  const isIdle = ({ delivery, message }: Receipt): boolean => message.delivery !== delivery && !settings.obeysOld

  const hide: Receipts["hide"] = (receipt, seconds, client, entry) => {
    const { delivery, message, queue } = receipt
    receipt.until = host.now() + seconds * 1000
    listen({ _tag: "Changed", message, queue: queue.name, delivery, due: receipt.until, client, entry })
    queue.store.hide(message, seconds * 1000)
  }

  return {
    give: (queue, message, seconds, client) => {
      const delivery = number()
      const received = host.now()
      const until = received + seconds * 1000
      const receipt = { handle: handleOf(delivery), delivery, queue, message, received, until, isUsed: false }
      receipts.set(receipt.handle, receipt)
      message.receives++
      message.firstReceived ??= received
      message.delivery = delivery
      listen({ _tag: "HandedOut", message, queue: queue.name, delivery, client })
      queue.store.hide(message, seconds * 1000)
      return receipt
    },
    hide,
    remove: (queue, entry) => {
      const { ReceiptHandle = "" } = entry
      const found = find(queue, ReceiptHandle)
      if ("code" in found) return found
      const { delivery, message } = found
      if (message.state === "gone") return undefined
      if (queue.isFifo && isExpired(found)) return expired(ReceiptHandle)
      if (isIdle(found)) return undefined
      found.isUsed = true
      if (happens("echo", queue)) return undefined
      queue.store.remove(message)
      listen({ _tag: "Gone", message, queue: queue.name, why: "settled", delivery, entry })
      // It may have been in front of others of its group.
      if (queue.isFifo) wake(queue)
      return undefined
    },
    change: (queue, entry, client) => {
      const { ReceiptHandle = "", VisibilityTimeout = 0 } = entry
      const found = find(queue, ReceiptHandle)
      if ("code" in found) return found
      if (found.message.state === "gone") {
        const reason = "Message does not exist or is not available for visibility timeout change."
        return invalidValue("ReceiptHandle", ReceiptHandle, reason)
      }
      if (queue.isFifo && isExpired(found)) return expired(ReceiptHandle)
      if (host.now() + VisibilityTimeout * 1000 > found.received + longest) {
        const reason = "Total VisibilityTimeout for the message is beyond the limit [43200 seconds]"
        return invalidValue("VisibilityTimeout", VisibilityTimeout, reason)
      }
      if (isIdle(found)) return undefined
      found.isUsed = true
      hide(found, VisibilityTimeout, client, entry)
      return undefined
    }
  }
}
