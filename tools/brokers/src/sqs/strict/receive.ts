/** Receives: the quota of messages in flight, duplicates, AWS's facts about messages, and the leases that begin. */
import type { Message } from "@aws-sdk/client-sqs"
import { setTimeout as sleep } from "node:timers/promises"
import { named, type AwsError } from "./AwsError.ts"
import * as Call from "./Call.ts"
import type { Duplicates } from "./duplicates.ts"
import type { Leases } from "./leases.ts"
import type { Messages } from "./messages.ts"
import type { ReceiveAttempts } from "./receiveAttempts.ts"
import type { Queues } from "./queues.ts"
import type { Reply, Ask } from "./upstream.ts"

interface State {
  readonly leases: Leases
  readonly queues: Queues
  readonly messages: Messages
  readonly duplicates: Duplicates
  readonly attempts: ReceiveAttempts
  /** The quota of messages of one queue in flight. */
  readonly inFlight: number
}

const replyWith = (Messages: ReadonlyArray<Message>): Reply => ({
  status: 200,
  headers: {},
  body: Messages.length === 0 ? {} : { Messages }
})

/**
 * Replies at the quota: with an error to a call that does not wait, else with no messages when its time is over.
 * https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/quotas-queues.html
 */
const atQuota = async (call: Call.Call): Promise<Reply | AwsError> => {
  const { WaitTimeSeconds = 0 } = call.body
  if (WaitTimeSeconds === 0 && !Call.isFifo(call)) return named("OverLimit")
  await sleep(WaitTimeSeconds * 1000)
  return replyWith([])
}

const messagesOf = ({ body }: Reply) => (body["Messages"] ?? []) as ReadonlyArray<Message> // as AWS documents it

/**
 * Polls until a message arrives or the time is over, as AWS does. fauxqs ends all polls when one message arrives.
 * https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-short-and-long-polling.html
 */
const poll = async (body: Call.Body, ask: Ask): Promise<Reply> => {
  const end = performance.now() + (body.WaitTimeSeconds ?? 0) * 1000
  for (let WaitTimeSeconds = body.WaitTimeSeconds; ; ) {
    const got = await ask("ReceiveMessage", WaitTimeSeconds === undefined ? body : { ...body, WaitTimeSeconds })
    WaitTimeSeconds = Math.round((end - performance.now()) / 1000)
    if (WaitTimeSeconds < 1 || got.status !== 200 || messagesOf(got).length > 0) return got
  }
}

export const receive = async (call: Call.Call, ask: Ask, state: State): Promise<Reply | AwsError> => {
  const { body, queue } = call
  const { attempts, duplicates, inFlight, leases, messages, queues } = state
  const attributes = await queues.attributes(queue, ask)
  const { MaxNumberOfMessages = 1, VisibilityTimeout = Number(attributes["VisibilityTimeout"]) } = body
  const again = await attempts.again(call, ask, VisibilityTimeout)
  if (again !== undefined) {
    return "code" in again ? again : replyWith(again.map((message) => messages.asked(body, message)))
  }
  const room = inFlight - leases.inFlight(queue)
  if (room <= 0) return atQuota(call)

  const copies = duplicates.take(queue, MaxNumberOfMessages)
  for (const { behind, message } of copies) leases.give(message.ReceiptHandle ?? "", queue, VisibilityTimeout, behind)
  if (copies.length > 0) return replyWith(copies.map(({ message }) => messages.asked(body, message)))

  const all = { MessageSystemAttributeNames: ["All"], MaxNumberOfMessages: Math.min(MaxNumberOfMessages, room) }
  const got = await poll({ ...body, ...all }, ask)
  if (got.status !== 200) return got
  const received = messagesOf(got).map((message) => messages.received(attributes["QueueArn"] ?? "", message))
  for (const { MessageId = "", ReceiptHandle = "" } of received) {
    leases.delivered(MessageId, ReceiptHandle, queue, VisibilityTimeout)
  }
  duplicates.seen(queue, received)
  attempts.seen(call, received)
  return replyWith(received.map((message) => messages.asked(body, message)))
}
