/**
 * The rules for whole calls that depend on the call alone.
 *
 * | rule | source |
 * | --- | --- |
 * | a batch has 1 to 10 entries with different ids of 1 to 80 letters, digits, hyphens and underscores | https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_SendMessageBatch.html |
 * | the messages of a batch have 1 MiB together | https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/quotas-messages.html |
 * | a receive is for 1 to 10 messages, waits up to 20 s and hides up to 12 h | https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_ReceiveMessage.html |
 */
import type * as Api from "./Api.ts"
import { type AwsError, invalidParameter, missingParameter, named, outside } from "./AwsError.ts"
import * as MessageRules from "./MessageRules.ts"

const sent = (error: AwsError, what: string): AwsError => ({
  ...error,
  message: `${error.message} You have sent ${what}.`
})

const batch = (entries: ReadonlyArray<Api.Entry>): AwsError | undefined => {
  const ids = entries.map(({ Id = "" }) => Id)
  if (entries.length === 0) return named.EmptyBatchRequest
  if (entries.length > 10) return sent(named.TooManyEntriesInBatchRequest, `${entries.length}`)
  if (!ids.every((id) => /^[\w-]{1,80}$/.test(id))) return named.InvalidBatchEntryId
  if (new Set(ids).size < ids.length) return named.BatchEntryIdsNotDistinct
  const size = entries.reduce((sum, entry) => sum + MessageRules.sizeOf(entry), 0)
  return size > MessageRules.mebibyte ? sent(named.BatchRequestTooLong, `${size} bytes`) : undefined
}

const receive = ({ MaxNumberOfMessages, VisibilityTimeout, WaitTimeSeconds }: Api.Body): AwsError | undefined =>
  outside("MaxNumberOfMessages", MaxNumberOfMessages, 1, 10) ??
  outside("VisibilityTimeout", VisibilityTimeout, 0, 43_200) ??
  outside("WaitTimeSeconds", WaitTimeSeconds, 0, 20)

/** Returns why SQS refuses a whole call; `undefined` if it does not. */
export const refusal = ({ action, body }: Api.Call): AwsError | undefined => {
  if (action.endsWith("Batch")) return batch(body.Entries ?? [])
  return action === "ReceiveMessage" ? receive(body) : undefined
}

/**
 * Returns why SQS refuses all messages of a send, because one of them lacks what a FIFO queue needs; `undefined` if it
 * does not. `isContentBased`: the queue makes deduplication ids of bodies.
 *
 * LocalStack's tests test_send_batch_missing_message_group_id_for_fifo_queue and
 * test_send_batch_missing_deduplication_id_for_fifo_queue, which its authors have validated on AWS.
 */
export const fifoRefusal = (entries: ReadonlyArray<Api.Entry>, isContentBased: boolean): AwsError | undefined => {
  for (const { MessageDeduplicationId, MessageGroupId } of entries) {
    if (MessageGroupId === undefined) return invalidParameter(missingParameter("MessageGroupId").message)
    if (MessageDeduplicationId === undefined && !isContentBased) {
      const either = "The queue should either have ContentBasedDeduplication enabled"
      return invalidParameter(`${either} or MessageDeduplicationId provided explicitly`)
    }
  }
  return undefined
}
