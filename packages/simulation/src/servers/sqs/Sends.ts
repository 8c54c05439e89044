/**
 * Sends of a simulated server of SQS.
 *
 * | rule | source |
 * | --- | --- |
 * | single entries of a batch fail, the others are sent | https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-batch-api-actions.html |
 * | for five minutes, a message with the deduplication id of another one succeeds with its id, and is not stored, even if that was deleted | https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/using-messagededuplicationid-property.html |
 * | the deduplication id is made of the body if the queue says so, and holds in its group if the queue says so | https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_SetQueueAttributes.html |
 */
import { createHash } from "node:crypto"
import * as Result from "effect/Result"
import type * as Api from "./Api.ts"
import type { AwsError } from "./AwsError.ts"
import * as Batches from "./Batches.ts"
import { fifoRefusal } from "./CallRules.ts"
import type { Content, Message } from "./Message.ts"
import { sendRefusal } from "./MessageRules.ts"
import { type Env, keep, numberOf, type Queue } from "./Queue.ts"

/** Milliseconds for which deduplication ids are remembered. */
const window = 300_000

const contentOf = (entry: Api.Entry, isFifo: boolean): Content => ({
  body: entry.MessageBody ?? "",
  attributes: entry.MessageAttributes ?? {},
  group: entry.MessageGroupId,
  deduplication: isFifo
    ? (entry.MessageDeduplicationId ??
      createHash("sha256")
        .update(entry.MessageBody ?? "")
        .digest("hex"))
    : entry.MessageDeduplicationId,
  trace: entry.MessageSystemAttributes?.["AWSTraceHeader"]?.StringValue
})

/** The message that has been sent with the same deduplication id. */
const earlier = ({ host }: Env, { attributes, sent }: Queue, { deduplication, group }: Content) => {
  const scope = attributes["DeduplicationScope"] === "messageGroup" ? group : ""
  const key = `${scope} ${deduplication}`
  const before = sent.get(key)
  const found = before !== undefined && host.now() - before.at < window ? before.message : undefined
  return { found, remember: (message: Message) => void sent.set(key, { at: host.now(), message }) }
}

/** Makes the sends. */
export const make = (env: Env) => {
  const one = (queue: Queue, entry: Api.Entry, client: string | undefined): Result.Result<object, AwsError> => {
    const { isFifo } = queue
    const refused = sendRefusal(entry, { isFifo, maxSize: numberOf(queue, "MaximumMessageSize") })
    if (refused !== undefined) return Result.fail(refused)
    const content = contentOf(entry, isFifo)
    const delay = 1000 * (entry.DelaySeconds ?? numberOf(queue, "DelaySeconds"))
    const how = { delay, client, entry }
    if (!isFifo) return Result.succeed({ MessageId: keep(env, queue, content, how).id })
    const { found, remember } = earlier(env, queue, content)
    const message = found ?? keep(env, queue, content, how)
    if (found === undefined) remember(message)
    return Result.succeed({ MessageId: message.id, SequenceNumber: String(message.copy) })
  }

  return {
    sendMessageBatch: (
      queue: Queue,
      { body: { Entries = [] }, client }: Api.Call,
      refuses: Batches.Refuses
    ): Api.Reply => {
      const isContentBased = queue.attributes["ContentBasedDeduplication"] === "true"
      const refused = queue.isFifo ? fifoRefusal(Entries, isContentBased) : undefined
      if (refused !== undefined) return Result.fail(refused)
      return Batches.each(Entries, refuses, (entry) => one(queue, entry, client))
    }
  }
}
