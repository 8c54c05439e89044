/** Move tasks. */
import { until } from "../lifecycle.ts"
import { outcome, type Case, type World } from "./World.ts"

const absent = (name: string) => [
  "ResourceNotFoundException",
  `The resource that you specified for the ${name} parameter doesn't exist.`
]

/** The last task of a queue, when it has ended. */
const ended = async ({ sqs }: World, SourceArn: string) => {
  const latest = async () => (await sqs.listMessageMoveTasks({ SourceArn })).Results?.[0]
  await until("the end of the task", async () => (await latest())?.Status !== "RUNNING")
  return latest()
}

export const cases = {
  moveSource: {
    aws: ["InvalidParameterValue", "Source queue must be configured as a Dead Letter Queue."],
    ask: async ({ arn, create, sqs }) => {
      const [SourceArn, DestinationArn] = [arn(await create()), arn(await create())]
      return outcome(() => sqs.startMessageMoveTask({ SourceArn, DestinationArn }))
    }
  },
  moveDestination: {
    aws: absent("DestinationArn"),
    ask: async ({ arn, given, sqs }) => {
      const [queue, deadLetters] = await given()
      const DestinationArn = `${arn(queue)}absent`
      return outcome(() => sqs.startMessageMoveTask({ SourceArn: arn(deadLetters), DestinationArn }))
    }
  },
  moveTwice: {
    aws: [
      "done",
      [
        "InvalidParameterValue",
        "There is already a task running. Only one active task is allowed for a source queue arn at a given time."
      ],
      ["CANCELLED", undefined]
    ],
    ask: async (world) => {
      const { arn, given, sqs } = world
      const [queue, deadLetters] = await given("a", "b", "c")
      const SourceArn = arn(deadLetters)
      const request = { SourceArn, DestinationArn: arn(queue), MaxNumberOfMessagesPerSecond: 1 }
      let TaskHandle: string | undefined
      const first = await outcome(async () => ({ TaskHandle } = await sqs.startMessageMoveTask(request)))
      const second = await outcome(() => sqs.startMessageMoveTask(request))
      await outcome(() => sqs.cancelMessageMoveTask({ TaskHandle }))
      const { Status, TaskHandle: handle } = (await ended(world, SourceArn)) ?? {}
      return [first, second, [Status, handle]]
    }
  },
  moveBack: {
    aws: [["COMPLETED", 2], "a 1", "b 1"],
    ask: async (world) => {
      const { arn, create, given, receive, redrive, sqs } = world
      const [one, deadLetters] = await given("a")
      const SourceArn = arn(deadLetters)
      const two = await create(redrive(SourceArn))
      await sqs.sendMessage({ QueueUrl: two, MessageBody: "b" })
      for (let time = 0; time < 2; time++) await receive(two, { VisibilityTimeout: 0 })
      await sqs.startMessageMoveTask({ SourceArn })
      const { ApproximateNumberOfMessagesMoved: moved, Status } = (await ended(world, SourceArn)) ?? {}
      const told = async (queue: string) => {
        const [{ Attributes, Body } = {}] = await receive(queue)
        return `${Body} ${Attributes?.ApproximateReceiveCount}`
      }
      return [[Status, moved], await told(one), await told(two)]
    }
  },
  moveSentMessage: {
    aws: ["FAILED", "CouldNotDetermineMessageSource", 1],
    ask: async (world) => {
      const { arn, given, receive, sqs } = world
      const [, deadLetters] = await given()
      const SourceArn = arn(deadLetters)
      await sqs.sendMessage({ QueueUrl: deadLetters, MessageBody: "sent" })
      await sqs.startMessageMoveTask({ SourceArn })
      const { FailureReason, Status } = (await ended(world, SourceArn)) ?? {}
      return [Status, FailureReason, (await receive(deadLetters)).length]
    }
  }
} satisfies Readonly<Record<string, Case>>
