/** One move task: its messages are received, sent and deleted one after the other. */
import type { Message } from "@aws-sdk/client-sqs"
import { randomUUID } from "node:crypto"
import { setTimeout as sleep } from "node:timers/promises"
import * as Arn from "./Arn.ts"
import type { Messages } from "./messages.ts"
import type { Queues } from "./queues.ts"
import type { Ask } from "./upstream.ts"

export interface Task {
  readonly id: string
  readonly from: string
  /** The destination; `undefined` for the queue that each message was moved from. */
  readonly to: string | undefined
  readonly perSecond: number | undefined
  readonly started: number
  readonly total: number
  moved: number
  status: "RUNNING" | "COMPLETED" | "CANCELLED" | "FAILED"
  failure: string | undefined
}

export interface Env {
  readonly queues: Queues
  readonly messages: Messages
  /** Ends the tasks. */
  readonly signal: AbortSignal
}

/** The message to send: it gets a new id, and its receives are counted anew. */
const copyOf = ({ Attributes = {}, Body, MessageAttributes }: Message, fifo: boolean) => ({
  MessageBody: Body,
  MessageAttributes,
  MessageGroupId: Attributes.MessageGroupId,
  ...(fifo ? { MessageDeduplicationId: randomUUID() } : {})
})

/** Moves one message of the queue with this URL; returns why it cannot, or whether there was one. */
const moveOne = async (
  task: Task,
  url: string,
  ask: Ask,
  { messages, queues }: Env
): Promise<{ readonly failure: string } | boolean> => {
  const all = { MessageAttributeNames: ["All"], MessageSystemAttributeNames: ["All"] }
  const { body } = await ask("ReceiveMessage", { QueueUrl: url, ...all })
  const [got] = (body["Messages"] ?? []) as ReadonlyArray<Message> // as AWS documents it
  if (got === undefined) return false
  const { ReceiptHandle } = got
  const message = messages.received(task.from, got)
  const to = task.to ?? message.Attributes?.DeadLetterQueueSourceArn
  const { name } = Arn.parse(to ?? "")
  const QueueUrl = to === undefined ? undefined : await queues.urlOf(name, ask)
  if (QueueUrl === undefined) {
    await ask("ChangeMessageVisibility", { QueueUrl: url, ReceiptHandle, VisibilityTimeout: 0 })
    return { failure: to === undefined ? "CouldNotDetermineMessageSource" : "AWS.SimpleQueueService.NonExistentQueue" }
  }
  const sent = await ask("SendMessage", { QueueUrl, ...copyOf(message, name.endsWith(".fifo")) })
  messages.sent(name, message.Attributes?.MessageGroupId, sent.body["MessageId"])
  await ask("DeleteMessage", { QueueUrl: url, ReceiptHandle })
  return true
}

/** Runs a task until its end, and sets its status. */
export const run = async (task: Task, url: string, ask: Ask, env: Env): Promise<void> => {
  while (task.status === "RUNNING" && !env.signal.aborted) {
    const moved = await moveOne(task, url, ask, env)
    if (moved === true) {
      task.moved++
      if (task.perSecond !== undefined) await sleep(1000 / task.perSecond, undefined, { signal: env.signal })
    } else if (moved === false) task.status = "COMPLETED"
    else {
      task.status = "FAILED"
      task.failure = moved.failure
    }
  }
}
