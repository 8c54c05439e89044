/** Move tasks. */
import * as Effect from "effect/Effect"
import * as Schedule from "effect/Schedule"
import { docs, row, validated, type World } from "./World.ts"

const guide = `${docs}/SQSDeveloperGuide`
const notFound = "ResourceNotFoundException"

const start = (
  { ask, client }: World,
  SourceArn: string,
  options: { readonly DestinationArn?: string; readonly MaxNumberOfMessagesPerSecond?: number } = {}
) => ask(() => client.startMessageMoveTask({ SourceArn, ...options }))

const latest = ({ ask, client }: World, SourceArn: string) =>
  Effect.map(
    ask(() => client.listMessageMoveTasks({ SourceArn })),
    ({ Results = [] }) => Results[0]
  )

/** The last task of a queue, when it has ended. */
const ended = (world: World, SourceArn: string) =>
  Effect.repeat(latest(world, SourceArn), {
    schedule: Schedule.spaced(50),
    until: (task) => task?.Status !== "RUNNING"
  })

export const rows = [
  row(
    "the source of a move task is a dead-letter queue",
    validated("test_source_needs_redrive_policy"),
    "InvalidParameterValue",
    function* (world) {
      const [from, to] = [yield* world.create(), yield* world.create()]
      return yield* world.code(start(world, yield* world.arn(from), { DestinationArn: yield* world.arn(to) }))
    }
  ),
  row("its destination exists", validated("test_destination_needs_to_exist"), notFound, function* (world) {
    const [queue, deadLetters] = yield* world.given()
    const DestinationArn = `${yield* world.arn(queue)}absent`
    return yield* world.code(start(world, yield* world.arn(deadLetters), { DestinationArn }))
  }),
  row("so does its source", validated("test_source_needs_to_exist"), notFound, function* (world) {
    return yield* world.code(start(world, `${yield* world.arn(yield* world.create())}absent`))
  }),
  row(
    "it moves 1 to 500 messages per second",
    `${docs}/APIReference/API_StartMessageMoveTask.html`,
    ["InvalidParameterValue", "InvalidParameterValue"],
    function* (world) {
      const [, deadLetters] = yield* world.given()
      const from = yield* world.arn(deadLetters)
      return yield* Effect.forEach([0, 501], (MaxNumberOfMessagesPerSecond) =>
        world.code(start(world, from, { MaxNumberOfMessagesPerSecond }))
      )
    }
  ),
  row(
    "each message goes back to the queue that SQS moved it from",
    validated("test_move_task_workflow_with_default_destination"),
    ["COMPLETED", 2, ["a", "b"], ["0", "0", "0"]],
    function* (world) {
      const [queue, deadLetters] = yield* world.given("a", "b")
      const from = yield* world.arn(deadLetters)
      yield* start(world, from)
      const task = yield* ended(world, from)
      const back = yield* world.receive(queue)
      return [
        task?.Status,
        task?.ApproximateNumberOfMessagesMoved,
        back.map(({ Body = "" }) => Body).toSorted(),
        yield* world.counts(deadLetters)
      ]
    }
  ),
  row(
    "with a new id, and its receives counted anew",
    `${guide}/sqs-configure-dead-letter-queue-redrive.html`,
    ["1", false, "undefined"],
    function* (world) {
      const [queue, deadLetters] = yield* world.given("a")
      const from = yield* world.arn(deadLetters)
      const [letter] = yield* world.receive(deadLetters, { VisibilityTimeout: 0 })
      yield* start(world, from)
      yield* ended(world, from)
      const [back] = yield* world.receive(queue)
      const { ApproximateReceiveCount, DeadLetterQueueSourceArn } = back?.Attributes ?? {}
      return [ApproximateReceiveCount, back?.MessageId === letter?.MessageId, String(DeadLetterQueueSourceArn)]
    }
  ),
  row(
    "a message that was sent to the queue has no source: the task fails",
    `${guide}/troubleshooting-dlq-redrive.html`,
    ["FAILED", "CouldNotDetermineMessageSource", ["1", "0", "0"]],
    function* (world) {
      const [, deadLetters] = yield* world.given()
      const from = yield* world.arn(deadLetters)
      yield* world.send(deadLetters, "sent")
      yield* start(world, from)
      const task = yield* ended(world, from)
      return [task?.Status, task?.FailureReason, yield* world.counts(deadLetters)]
    }
  ),
  row(
    "a destination takes it",
    `${guide}/sqs-configure-dead-letter-queue-redrive.html`,
    ["COMPLETED", ["1", "0", "0"]],
    function* (world) {
      const [, deadLetters] = yield* world.given()
      const to = yield* world.create()
      const from = yield* world.arn(deadLetters)
      yield* world.send(deadLetters, "sent")
      yield* start(world, from, { DestinationArn: yield* world.arn(to) })
      return [(yield* ended(world, from))?.Status, yield* world.counts(to)]
    }
  ),
  row(
    "a queue has one task at a time, which can be cancelled",
    validated("test_start_multiple_move_tasks"),
    ["InvalidParameterValue", "CANCELLED", "undefined"],
    function* (world) {
      const [queue, deadLetters] = yield* world.given("a", "b", "c")
      const from = yield* world.arn(deadLetters)
      const slow = { DestinationArn: yield* world.arn(queue), MaxNumberOfMessagesPerSecond: 1 }
      const { TaskHandle } = yield* start(world, from, slow)
      const second = yield* world.code(start(world, from, slow))
      yield* world.ask(() => world.client.cancelMessageMoveTask({ TaskHandle }))
      const task = yield* ended(world, from)
      return [second, task?.Status, String(task?.TaskHandle)]
    }
  )
]
