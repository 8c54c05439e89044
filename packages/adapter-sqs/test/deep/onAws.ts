/** What only AWS can tell for certain. The same cases pass behind the strict proxy, so that only AWS itself is new to them. */
import type { SQS } from "@aws-sdk/client-sqs"
import { type Handler, RetryPolicy } from "@requeue/core"
import * as Effect from "effect/Effect"
import { assert } from "vitest"
import { SqsOperator } from "../../src/index.ts"
import { consume, drain, no, on, outgoing, queueName as unique, until, untilEmpty, type Run } from "../real/world.ts"

/** Where a case runs. */
interface Place {
  readonly url: string
  /** Past the adapter. */
  readonly sqs: SQS
}

/** A sentence, and the program that shows it. */
export type Case = readonly [name: string, run: (place: Place) => Promise<void>]

/** The start of the names of all queues, by which they are found and removed. */
export const prefix = "requeue-facts-"

const queueName = (base: string): string => unique(`${prefix}${base}`)

const within = 120_000

const retry = RetryPolicy.make({ maxRetries: 1 })

/** Long polls: a short one asks some of AWS's machines only. */
const wait = 5

/** Runs a handler until that many runs have begun; answers `id attempts` of each. */
const runsOf = (
  { url }: Place,
  queue: string,
  count: number,
  handler: Handler.MessageHandler<string>,
  messages: ReadonlyArray<ReturnType<typeof outgoing>> = []
): Promise<ReadonlyArray<string>> => {
  const runs: Array<Run> = []
  return on({ url }, (broker) =>
    Effect.gen(function* () {
      yield* consume(queue, runs, { retry, concurrency: 1 }, handler)
      if (messages.length > 0) yield* broker.publish(messages)
      yield* until("the runs", () => runs.length >= count, within)
      return runs.map(({ attempts, id }) => `${id} ${attempts}`)
    })
  )
}

export const cases: ReadonlyArray<Case> = [
  [
    "S3: what SQS itself has moved to a dead-letter queue is run there from attempt 1, and given up after its last",
    async (place) => {
      const { sqs } = place
      const [source, queue] = [queueName("source"), queueName("moved")]
      const { QueueUrl: letters } = await sqs.createQueue({ QueueName: queue })
      const { Attributes } = await sqs.getQueueAttributes({ QueueUrl: letters, AttributeNames: ["QueueArn"] })
      const RedrivePolicy = JSON.stringify({ deadLetterTargetArn: Attributes?.QueueArn, maxReceiveCount: 3 })
      const { QueueUrl } = await sqs.createQueue({ QueueName: source, Attributes: { RedrivePolicy } })
      await sqs.sendMessage({ QueueUrl, MessageBody: '"a"' })
      const isMoved = async () => {
        const { Messages = [] } = await sqs.receiveMessage({ QueueUrl, VisibilityTimeout: 0, WaitTimeSeconds: 1 })
        return Messages.length === 0
      }
      await Effect.runPromise(until("the move", isMoved, within))
      const runs = await runsOf(place, queue, 2, () => no)
      assert.deepStrictEqual(
        runs.map((run) => run.split(" ")[1]),
        ["1", "2"]
      )
      await Effect.runPromise(untilEmpty(sqs, queue))
      assert.lengthOf(await drain(sqs, `${queue}-dlq`), 1)
    }
  ],
  [
    "S4: a move task that is not told where to finds the only source of our letters",
    async (place) => {
      const { sqs, url } = place
      const queue = queueName("moves")
      const letters = `${queue}-dlq`
      const run = <A>(effect: Effect.Effect<A, unknown>) => Effect.runPromise(effect)
      await runsOf(place, queue, 2, () => no, [outgoing(queue, "a")])
      await run(untilEmpty(sqs, queue))
      await run(SqsOperator.startMove(letters, { url }))
      const isOver = async () => (await run(SqsOperator.moves(letters, { url })))[0]?.status === "COMPLETED"
      await run(until("the end of the task", isOver, within))
      const runs = await runsOf(place, queue, 1, () => {})
      assert.deepStrictEqual(runs, ["a 1"])
      await run(untilEmpty(sqs, letters))
    }
  ],
  [
    "S7: a failing head holds back its group alone, and nothing behind it has used up an attempt",
    async (place) => {
      const queue = `${queueName("groups")}.fifo`
      const message = (id: string) => outgoing(queue, id, { headers: { "message-group-id": id.slice(0, 1) } })
      const runs = await runsOf(
        place,
        queue,
        6,
        ({ attempts, id }) => (id === "1a" && attempts === 1 ? no : undefined),
        ["1a", "1b", "1c", "2a", "2b"].map(message)
      )
      const of = (group: string) => runs.filter((run) => run.startsWith(group))
      assert.deepStrictEqual(
        [of("1"), of("2")],
        [
          ["1a 1", "1a 2", "1b 1", "1c 1"],
          ["2a 1", "2b 1"]
        ]
      )
      await Effect.runPromise(untilEmpty(place.sqs, queue))
    }
  ],
  [
    "S7: a receive that is asked again with its attempt id answers the same messages",
    async ({ sqs }) => {
      const QueueName = `${queueName("attempt")}.fifo`
      const Attributes = { FifoQueue: "true", ContentBasedDeduplication: "true" }
      const { QueueUrl } = await sqs.createQueue({ QueueName, Attributes })
      await sqs.sendMessage({ QueueUrl, MessageBody: "a", MessageGroupId: "g" })
      const receive = async (ReceiveRequestAttemptId: string) => {
        const { Messages = [] } = await sqs.receiveMessage({ QueueUrl, ReceiveRequestAttemptId, WaitTimeSeconds: wait })
        return Messages.map(({ Body }) => Body)
      }
      assert.deepStrictEqual([await receive("one"), await receive("one"), await receive("two")], [["a"], ["a"], []])
    }
  ]
]
