/**
 * Receives of FIFO queues that are repeated by their id, as after a lost answer.
 * https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_ReceiveMessage.html
 */
import type { Message } from "@aws-sdk/client-sqs"
import { invalidParameter, type AwsError } from "./AwsError.ts"
import * as Call from "./Call.ts"
import type { Leases } from "./leases.ts"
import type { Ask } from "./upstream.ts"

/** Milliseconds for which a receive can be repeated. */
const window = 300_000

export type ReceiveAttempts = ReturnType<typeof make>

export const make = (now: () => number, leases: Leases) => {
  const receives = new Map<string, { readonly at: number; readonly messages: ReadonlyArray<Message> }>()
  const keyOf = (call: Call.Call): string | undefined =>
    Call.isFifo(call) && call.body.ReceiveRequestAttemptId !== undefined
      ? `${call.queue} ${call.body.ReceiveRequestAttemptId}`
      : undefined

  return {
    seen: (call: Call.Call, messages: ReadonlyArray<Message>): void => {
      const key = keyOf(call)
      if (key !== undefined && messages.length > 0) receives.set(key, { at: now(), messages })
    },
    /**
     * The messages of the earlier receive with the same id, with the same handles and with leases that begin anew; `undefined` if
     * there was none. AWS rejects it if one of them was deleted, or its visibility changed.
     */
    again: async (
      call: Call.Call,
      ask: Ask,
      VisibilityTimeout: number
    ): Promise<ReadonlyArray<Message> | AwsError | undefined> => {
      const before = receives.get(keyOf(call) ?? "")
      if (before === undefined || now() - before.at > window) return undefined
      const handles = before.messages.map(({ ReceiptHandle = "" }) => ReceiptHandle)
      const known = handles.flatMap((handle) => leases.find(handle) ?? [])
      if (known.some(({ deleted, until }) => !deleted && until <= now())) return undefined
      if (known.some(({ changed, deleted }) => changed || deleted)) {
        const reason = "The receiveRequestAttemptId is not valid anymore since the receive call is not retryable."
        const { ReceiveRequestAttemptId: id } = call.body
        return invalidParameter(`Value ${id} for parameter ReceiveRequestAttemptId is invalid. Reason: ${reason}`)
      }
      for (const lease of known) lease.until = now() + VisibilityTimeout * 1000
      const Entries = handles.map((handle, index) => ({
        Id: String(index),
        ReceiptHandle: leases.behind(handle),
        VisibilityTimeout
      }))
      await ask("ChangeMessageVisibilityBatch", { QueueUrl: call.body.QueueUrl, Entries })
      return before.messages
    }
  }
}
