/**
 * Move tasks. fauxqs has none, and those of ElasticMQ check nothing, so the proxy moves the messages itself.
 * https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_StartMessageMoveTask.html
 */
import { randomUUID } from "node:crypto"
import * as Arn from "./Arn.ts"
import { invalidParameter, notFound, type AwsError } from "./AwsError.ts"
import type * as Call from "./Call.ts"
import { sourcesOf } from "./deadLetters.ts"
import { outside } from "./messageRules.ts"
import type { Messages } from "./messages.ts"
import { run, type Task } from "./moveTask.ts"
import type { Queues } from "./queues.ts"
import type { Ask, Reply } from "./upstream.ts"

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

export const make = (now: () => number, queues: Queues, messages: Messages) => {
  const tasks: Array<Task> = []
  const ended = new AbortController()
  const env = { queues, messages, signal: ended.signal }

  /** Returns the URL of a queue by its ARN; `undefined` if it does not exist. */
  const find = (arn: string, ask: Ask) => queues.urlOf(Arn.parse(arn).name, ask)

  return {
    start: async ({ body }: Call.Call, ask: Ask): Promise<Reply | AwsError> => {
      const { DestinationArn: to, MaxNumberOfMessagesPerSecond: perSecond, SourceArn: from = "" } = body
      const refused = outside("MaxNumberOfMessagesPerSecond", perSecond, 1, 500)
      if (refused !== undefined) return refused
      const url = await find(from, ask)
      if (url === undefined) return absent("SourceArn")
      if ((await sourcesOf(from, ask, queues)).length === 0) {
        return invalidParameter("Source queue must be configured as a Dead Letter Queue.")
      }
      if (to !== undefined && (await find(to, ask)) === undefined) return absent("DestinationArn")
      const total = await queues.waiting(url, ask)
      if (tasks.some((task) => task.from === from && task.status === "RUNNING")) {
        const one = "Only one active task is allowed for a source queue arn at a given time."
        return invalidParameter(`There is already a task running. ${one}`)
      }
      const plan = { id: randomUUID(), from, to, perSecond, started: now(), total }
      const task: Task = { ...plan, moved: 0, status: "RUNNING", failure: undefined }
      tasks.unshift(task)
      void run(task, url, ask, env).catch(() => (task.status = "FAILED"))
      return ok({ TaskHandle: handleOf(task) })
    },
    list: async ({ body }: Call.Call, ask: Ask): Promise<Reply | AwsError> => {
      const { MaxResults = 1, SourceArn = "" } = body
      if ((await find(SourceArn, ask)) === undefined) return absent("SourceArn")
      const mine = tasks.filter(({ from }) => from === SourceArn)
      return ok({ Results: mine.slice(0, MaxResults).map(told) })
    },
    cancel: async ({ body: { TaskHandle } }: Call.Call, ask: Ask): Promise<Reply | AwsError> => {
      const source = sourceIn(TaskHandle)
      if (source === undefined) return invalidParameter("Value for parameter TaskHandle is invalid.")
      if ((await find(source, ask)) === undefined) return absent("SourceArn")
      const task = tasks.find((one) => handleOf(one) === TaskHandle)
      if (task === undefined) return notFound("Task does not exist.")
      if (task.status === "RUNNING") task.status = "CANCELLED"
      return ok({ ApproximateNumberOfMessagesMoved: task.moved })
    },
    /** Ends all tasks. */
    close: (): void => ended.abort()
  }
}
