/**
 * Move tasks of a simulated server of SQS.
 *
 * | rule | source |
 * | --- | --- |
 * | the source is the dead-letter queue of another queue | test_source_needs_redrive_policy of LocalStack |
 * | the destination exists | test_destination_needs_to_exist of LocalStack |
 * | a queue has one task at a time | test_start_multiple_move_tasks of LocalStack |
 * | without a destination, each message goes back to the queue that SQS moved it from; a task fails at a message that was sent | https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/troubleshooting-dlq-redrive.html |
 * | a moved message has a new id, and its receives are counted anew | https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-configure-dead-letter-queue-redrive.html |
 * | 1 to 500 messages per second | https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_StartMessageMoveTask.html |
 */
import * as Result from "effect/Result"
import type * as Api from "./Api.ts"
import { invalidParameter, notFound, outside } from "./AwsError.ts"
import type { Message } from "./Message.ts"
import { byArn, type Env, keep, type Queue } from "./Queue.ts"
import { sourcesOf } from "./Queues.ts"

interface Task {
  readonly handle: string
  readonly from: Queue
  /** The destination; `undefined` for the queue that each message was moved from. */
  readonly to: string | undefined
  readonly perSecond: number | undefined
  readonly started: number
  readonly total: number
  moved: number
  status: "RUNNING" | "COMPLETED" | "CANCELLED" | "FAILED"
  failure: string | undefined
}

/** The messages per second of a task without a limit. */
const fastest = 500

const absent = (name: string): Api.Reply =>
  Result.fail(notFound(`The resource that you specified for the ${name} parameter doesn't exist.`))

const listed = (task: Task): object => ({
  ...(task.status === "RUNNING" ? { TaskHandle: task.handle } : {}),
  Status: task.status,
  SourceArn: task.from.arn,
  DestinationArn: task.to,
  MaxNumberOfMessagesPerSecond: task.perSecond,
  ApproximateNumberOfMessagesMoved: task.moved,
  ApproximateNumberOfMessagesToMove: task.total,
  FailureReason: task.failure,
  StartedTimestamp: task.started
})

/** Makes the calls about move tasks. */
export const make = (env: Env) => {
  const tasks: Array<Task> = []

  /** Moves a message; returns why it cannot. */
  const move = ({ from, to }: Task, message: Message): string | undefined => {
    const target = to ?? message.source
    if (target === undefined) return "CouldNotDetermineMessageSource"
    const queue = byArn(env, target)
    if (queue === undefined) return "AWS.SimpleQueueService.NonExistentQueue"
    from.store.remove(message)
    env.listen({ _tag: "Gone", message, queue: from.name, why: "moved", delivery: undefined })
    keep(env, queue, message.content, { delay: 0, client: undefined })
    return undefined
  }

  const step = (task: Task): void => {
    if (task.status !== "RUNNING") return
    const [message] = task.from.store.next(1)
    task.failure = message === undefined ? undefined : move(task, message)
    if (message === undefined) task.status = "COMPLETED"
    else if (task.failure !== undefined) task.status = "FAILED"
    else {
      task.moved++
      env.host.after(1000 / (task.perSecond ?? fastest), () => step(task))
    }
  }

  return {
    startMessageMoveTask: ({ body }: Api.Call): Api.Reply => {
      const { DestinationArn: to, MaxNumberOfMessagesPerSecond: perSecond, SourceArn = "" } = body
      const refused = outside("MaxNumberOfMessagesPerSecond", perSecond, 1, 500)
      if (refused !== undefined) return Result.fail(refused)
      const from = byArn(env, SourceArn)
      if (from === undefined) return absent("SourceArn")
      if (sourcesOf(env, from).length === 0) {
        return Result.fail(invalidParameter("Source queue must be configured as a Dead Letter Queue."))
      }
      if (to !== undefined && byArn(env, to) === undefined) return absent("DestinationArn")
      if (tasks.some((task) => task.from === from && task.status === "RUNNING")) {
        const one = "Only one active task is allowed for a source queue arn at a given time."
        return Result.fail(invalidParameter(`There is already a task running. ${one}`))
      }
      const [started, total] = [env.host.now(), from.store.counts().ready]
      const plan = { handle: `task-${env.number()}`, from, to, perSecond, started, total }
      const task: Task = { ...plan, moved: 0, status: "RUNNING", failure: undefined }
      tasks.unshift(task)
      env.host.after(1, () => step(task))
      return Result.succeed({ TaskHandle: task.handle })
    },
    listMessageMoveTasks: ({ body: { MaxResults = 1, SourceArn = "" } }: Api.Call): Api.Reply => {
      const from = byArn(env, SourceArn)
      if (from === undefined) return absent("SourceArn")
      const mine = tasks.filter((task) => task.from === from)
      return Result.succeed({ Results: mine.slice(0, MaxResults).map(listed) })
    },
    cancelMessageMoveTask: ({ body: { TaskHandle } }: Api.Call): Api.Reply => {
      const task = tasks.find(({ handle }) => handle === TaskHandle)
      if (task === undefined) return Result.fail(notFound("Task does not exist."))
      if (task.status === "RUNNING") task.status = "CANCELLED"
      return Result.succeed({ ApproximateNumberOfMessagesMoved: task.moved })
    }
  }
}
