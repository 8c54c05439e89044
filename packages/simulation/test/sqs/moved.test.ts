/** Consumers and functions of a dead-letter queue run what SQS has moved there, whose count of receives goes on. */
import { SqsLambda } from "@requeue/adapter-sqs/lambda"
import { Broker, RetryPolicy } from "@requeue/core"
import { DeadLetters } from "@requeue/operations"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { assert, describe, test } from "vitest"
import { no, on, type Run, until, type World } from "./world.ts"

/** More receives than any policy of this file allows deliveries. */
const maxReceiveCount = 20
const retry = RetryPolicy.make({ maxRetries: 2, maxDeliveries: 3 })

/** Runs a program on a queue `moved`, to which SQS has moved a message of the queue `source`. */
const onMoved = (
  program: (world: World, queue: string, source: string) => Effect.Effect<unknown, unknown, Scope.Scope>,
  isFifo = false
) =>
  on({}, (world) =>
    Effect.gen(function* () {
      const end = isFifo ? ".fifo" : ""
      const [queue, source] = [`moved${end}`, `source${end}`]
      const kind: Record<string, string> = isFifo ? { FifoQueue: "true" } : {}
      yield* world.ask("CreateQueue", queue, { QueueName: queue, Attributes: kind })
      const deadLetterTargetArn = world.server.queue(queue)!.arn
      const RedrivePolicy = JSON.stringify({ deadLetterTargetArn, maxReceiveCount })
      yield* world.ask("CreateQueue", source, { QueueName: source, Attributes: { ...kind, RedrivePolicy } })
      const group = isFifo ? { MessageGroupId: "g", MessageDeduplicationId: "a" } : {}
      yield* world.ask("SendMessageBatch", source, { Entries: [{ Id: "0", MessageBody: '"a"', ...group }] })
      for (let time = 0; time <= maxReceiveCount; time++)
        yield* world.ask("ReceiveMessage", source, { VisibilityTimeout: 0 })
      yield* program(world, queue, source)
    })
  )

const attemptsOf = (runs: ReadonlyArray<Run>) => runs.map(({ attempts }) => attempts)

describe.each([
  ["standard", false],
  ["FIFO", true]
])("in a %s queue", (_, isFifo) => {
  test.each([
    ["", []],
    [", also where the source may not be read", ["GetQueueAttributes"]]
  ])("a consumer runs it as often as its policy says%s", (_also, denied) =>
    onMoved(
      (world, queue, source) =>
        Effect.gen(function* () {
          const runs: Array<Run> = []
          world.server.deny(denied, source)
          yield* world.consume(yield* world.broker(), queue, runs, { retry }, () => no)
          yield* until("three runs", () => runs.length >= 3)
          yield* world.untilEmpty(queue)
          assert.deepStrictEqual(attemptsOf(runs), [1, 2, 3])
          assert.strictEqual(world.left(`${queue}.dlq`), 1)
        }),
      isFifo
    )
  )
})

/** Sets another count of receives in the redrive policy of a queue. */
const limit = ({ ask, server }: World, queue: string, count: number) => {
  const policy = JSON.parse(server.queue(queue)!.attributes["RedrivePolicy"]!) as object
  const RedrivePolicy = JSON.stringify({ ...policy, maxReceiveCount: count })
  return ask("SetQueueAttributes", queue, { Attributes: { RedrivePolicy } })
}

test("one that was moved before the source's maxReceiveCount was lowered is run as well", () =>
  onMoved((world, queue, source) =>
    Effect.gen(function* () {
      yield* limit(world, source, 2)
      yield* world.ask("CreateQueue", queue, { QueueName: `${queue}-dlq` })
      const runs: Array<Run> = []
      yield* world.consume(yield* world.broker({ queues: "use" }), queue, runs, { retry }, () => no)
      yield* world.untilEmpty(queue)
      assert.lengthOf(runs, 1)
    })
  ))

test("a function runs it, in whichever instance", () =>
  onMoved(({ ask, connection, elsewhere, left, now, server }, queue) =>
    Effect.gen(function* () {
      const runs: Array<number> = []
      yield* ask("CreateQueue", queue, { QueueName: `${queue}-dlq` })
      for (let instance = 0; instance < 3; instance++) {
        const lambda = yield* elsewhere(
          SqsLambda.make(queue, { retry, sqs: { ...connection, queues: "use" } }, ({ attempts }) => {
            runs.push(attempts)
            return no
          })
        )
        const { Messages = [] }: { Messages?: ReadonlyArray<Record<string, unknown>> } = yield* ask(
          "ReceiveMessage",
          queue,
          {
            WaitTimeSeconds: 0,
            MessageSystemAttributeNames: ["All"]
          }
        )
        const Records = Messages.map(({ Attributes, Body, MessageId, ReceiptHandle }) => ({
          messageId: MessageId,
          receiptHandle: ReceiptHandle,
          body: Body,
          attributes: Attributes,
          messageAttributes: {},
          eventSourceARN: server.queue(queue)!.arn
        })) as ReadonlyArray<SqsLambda.SqsRecord> // as Lambda documents it
        const end = now() + 20_000
        const event = { Records: [...Records] }
        const { batchItemFailures } = yield* lambda(event, { getRemainingTimeInMillis: () => end - now() })
        if (batchItemFailures.length > 0) continue
        const Entries = Records.map(({ receiptHandle }, Id) => ({ Id: String(Id), ReceiptHandle: receiptHandle }))
        yield* ask("DeleteMessageBatch", queue, { Entries })
      }
      assert.deepStrictEqual(runs, [1, 2, 3])
      assert.strictEqual(left(`${queue}.dlq`), 1)
    })
  ))

test("the queue's own backstop lies above the receives of before, and one that does not is refused", () =>
  onMoved((world, queue) =>
    Effect.gen(function* () {
      const runs: Array<Run> = []
      yield* Effect.scoped(
        Effect.gen(function* () {
          yield* world.consume(yield* world.broker(), queue, runs, { retry })
          yield* until("a run", () => runs.length === 1)
        })
      )
      const policy = world.server.queue(queue)!.attributes["RedrivePolicy"]!
      assert.include(policy, `"maxReceiveCount":${maxReceiveCount + 2 * 3 + 5}`)
      yield* limit(world, queue, 11)
      const refused = yield* Effect.flip(world.consume(yield* world.broker(), queue, runs, { retry }))
      assert.deepInclude(refused, { reason: "QueueMismatch" })
      assert.include(String(refused), "needs more than 23")
    })
  ))

test("it is listed with its source and redriven there, from attempt 1", () =>
  onMoved((world, queue, source) =>
    Effect.gen(function* () {
      const runs: Array<Run> = []
      const one = yield* world.broker({ queues: "use" })
      const letters = yield* Effect.provideService(DeadLetters.make(queue), Broker.Broker, one)
      const [letter] = yield* letters.list()
      assert.deepInclude(letter?.origin, { queue: source, attempts: maxReceiveCount })
      // That SQS has moved it is not enough: a policy or the operator says where letters may go.
      assert.deepInclude(yield* letters.redrive({ origin: source }), { redriven: 1, refused: 0 })
      yield* world.consume(one, source, runs, { retry: RetryPolicy.make({ maxRetries: 0, deadLetter: queue }) })
      yield* until("a run", () => runs.length === 1)
      assert.deepStrictEqual(attemptsOf(runs), [1])
    })
  ))
