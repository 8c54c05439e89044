/**
 * Move tasks. fauxqs has none, and those of ElasticMQ check nothing, so the proxy moves the messages itself.
 * https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_StartMessageMoveTask.html
 */
import type { Message } from "@aws-sdk/client-sqs"
import { randomUUID } from "node:crypto"
import { setTimeout as sleep } from "node:timers/promises"
import * as Arn from "./Arn.ts"
import { invalidParameter, notFound, type AwsError } from "./AwsError.ts"
import type * as Call from "./Call.ts"
import { sourcesOf } from "./deadLetters.ts"
import { outside } from "./messageRules.ts"
import type { Messages } from "./messages.ts"
import type { Queues } from "./queues.ts"
import type { Ask, Reply } from "./upstream.ts"

interface Task {
  readonly id: string
  readonly from: string
  readonly to: string | undefined
  readonly perSecond: number | undefined
  readonly started: number
  readonly total: number
  moved: number
  status: "RUNNING" | "COMPLETED" | "CANCELLED" | "FAILED"
  failure: string | undefined
}

const ok = (body: Reply["body"]): Reply => ({ status: 200, headers: {}, body })

const absent = (name: string): AwsError =>
  notFound(`The resource that you specified for the ${name} parameter doesn't exist.`)

const handleOf = ({ from, id }: Task): string =>
  Buffer.from(JSON.stringify({ taskId: id, sourceArn: from })).toString("base64")

const sourceIn = (handle = ""): string | undefined =>
  /"sourceArn":"([^"]+)"/.exec(Buffer.from(handle, "base64").toString())?.[1]

const told = (task: Task) => ({
  ...(task.status === "RUNNING" ? { TaskHandle: handleOf(task) } : {}),
  Status: task.status,
  SourceArn: task.from,
  DestinationArn: task.to,
  MaxNumberOfMessagesPerSecond: task.perSecond,
  ApproximateNumberOfMessagesMoved: task.moved,
  ApproximateNumberOfMessagesToMove: task.total,
  FailureReason: task.failure,
  StartedTimestamp: task.started
})

/** The message as it is sent: it gets a new id, and its receives are counted anew. */
const copyOf = ({ Attributes = {}, Body, MessageAttributes }: Message, fifo: boolean) => ({
  MessageBody: Body,
  MessageAttributes,
  MessageGroupId: Attributes.MessageGroupId,
  ...(fifo ? { MessageDeduplicationId: randomUUID() } : {})
})

export const make = (now: () => number, queues: Queues, messages: Messages) => {
  const tasks: Array<Task> = []
  const ended = new AbortController()

  /** Moves one message; answers why it cannot, or whether there was one. */
  const moveOne = async (task: Task, from: string, ask: Ask): Promise<{ readonly failure: string } | boolean> => {
    const all = { MessageAttributeNames: ["All"], MessageSystemAttributeNames: ["All"] }
    const { body } = await ask("ReceiveMessage", { QueueUrl: from, ...all })
    const [got] = (body["Messages"] ?? []) as ReadonlyArray<Message> // as AWS documents it
    if (got === undefined) return false
    const message = messages.received(task.from, got)
    const { ReceiptHandle } = got
    const to = task.to ?? message.Attributes?.DeadLetterQueueSourceArn
    const { name } = Arn.parse(to ?? "")
    const QueueUrl = to === undefined ? undefined : await queues.urlOf(name, ask)
    if (QueueUrl === undefined) {
      await ask("ChangeMessageVisibility", { QueueUrl: from, ReceiptHandle, VisibilityTimeout: 0 })
      return {
        failure: to === undefined ? "CouldNotDetermineMessageSource" : "AWS.SimpleQueueService.NonExistentQueue"
      }
    }
    const sent = await ask("SendMessage", { QueueUrl, ...copyOf(message, name.endsWith(".fifo")) })
    messages.sent(name, message.Attributes?.MessageGroupId, sent.body["MessageId"])
    await ask("DeleteMessage", { QueueUrl: from, ReceiptHandle })
    return true
  }

  const run = async (task: Task, from: string, ask: Ask): Promise<void> => {
    while (task.status === "RUNNING") {
      const moved = await moveOne(task, from, ask)
      if (moved === true) {
        task.moved++
        if (task.perSecond !== undefined) await sleep(1000 / task.perSecond, undefined, { signal: ended.signal })
      } else if (moved === false) task.status = "COMPLETED"
      else {
        task.status = "FAILED"
        task.failure = moved.failure
      }
    }
  }

  return {
    start: async ({ body }: Call.Call, ask: Ask): Promise<Reply | AwsError> => {
      const { DestinationArn: to, MaxNumberOfMessagesPerSecond: perSecond, SourceArn: from = "" } = body
      const refused = outside("MaxNumberOfMessagesPerSecond", perSecond, 1, 500)
      if (refused !== undefined) return refused
      const QueueUrl = await queues.urlOf(Arn.parse(from).name, ask)
      if (QueueUrl === undefined) return absent("SourceArn")
      if ((await sourcesOf(from, ask, queues)).length === 0) {
        return invalidParameter("Source queue must be configured as a Dead Letter Queue.")
      }
      if (to !== undefined && (await queues.urlOf(Arn.parse(to).name, ask)) === undefined)
        return absent("DestinationArn")
      if (tasks.some((task) => task.from === from && task.status === "RUNNING")) {
        const one = "Only one active task is allowed for a source queue arn at a given time."
        return invalidParameter(`There is already a task running. ${one}`)
      }
      const total = await queues.waiting(QueueUrl, ask)
      const task: Task = {
        ...{ id: randomUUID(), from, to, perSecond, started: now(), total, moved: 0 },
        ...{ status: "RUNNING", failure: undefined }
      }
      tasks.unshift(task)
      void run(task, QueueUrl, ask).catch(() => (task.status = "FAILED"))
      return ok({ TaskHandle: handleOf(task) })
    },
    list: async ({ body }: Call.Call, ask: Ask): Promise<Reply | AwsError> => {
      const { MaxResults = 1, SourceArn = "" } = body
      if ((await queues.urlOf(Arn.parse(SourceArn).name, ask)) === undefined) return absent("SourceArn")
      const mine = tasks.filter(({ from }) => from === SourceArn)
      return ok({ Results: mine.slice(0, MaxResults).map(told) })
    },
    cancel: async ({ body: { TaskHandle } }: Call.Call, ask: Ask): Promise<Reply | AwsError> => {
      const source = sourceIn(TaskHandle)
      if (source === undefined) return invalidParameter("Value for parameter TaskHandle is invalid.")
      if ((await queues.urlOf(Arn.parse(source).name, ask)) === undefined) return absent("SourceArn")
      const task = tasks.find((one) => handleOf(one) === TaskHandle)
      if (task === undefined) return notFound("Task does not exist.")
      if (task.status === "RUNNING") task.status = "CANCELLED"
      return ok({ ApproximateNumberOfMessagesMoved: task.moved })
    },
    /** Ends all tasks. */
    close: (): void => {
      for (const task of tasks) if (task.status === "RUNNING") task.status = "CANCELLED"
      ended.abort()
    }
  }
}
