/** Consumers and functions of a dead-letter queue run what SQS has moved there, whose count of receives goes on. */
import type { SQS } from "@aws-sdk/client-sqs"
import { RetryPolicy } from "@requeue/core"
import { DeadLetters } from "@requeue/operations"
import * as Effect from "effect/Effect"
import { describe, expect, onTestFinished, test } from "vitest"
import { SqsLambda } from "../../src/lambda.ts"
import { mapping } from "./mapping.ts"
import { connect } from "../real/connect.ts"
import { each } from "./strict.ts"
import { consume, drain, idOf, no, on, queueName, until, untilEmpty, urlOf, type Run } from "../real/world.ts"

const servers = await each("fauxqs", "elasticmq")

/** More receives than any policy of this file allows deliveries. */
const maxReceiveCount = 20
const retry = RetryPolicy.make({ maxRetries: 2, maxDeliveries: 3 })

const arnOf = async (sqs: SQS, QueueUrl: string | undefined): Promise<string> =>
  (await sqs.getQueueAttributes({ QueueUrl, AttributeNames: ["QueueArn"] })).Attributes!.QueueArn!

/** A dead-letter queue to which SQS has moved a message; answers its name and the source's. */
const moved = async (client: SQS, isFifo = false) => {
  const end = isFifo ? ".fifo" : ""
  const Attributes = isFifo ? { FifoQueue: "true" } : {}
  const [source, queue] = [`${queueName("source")}${end}`, `${queueName("moved")}${end}`]
  const { QueueUrl: letters } = await client.createQueue({ QueueName: queue, Attributes })
  const RedrivePolicy = JSON.stringify({ deadLetterTargetArn: await arnOf(client, letters), maxReceiveCount })
  const { QueueUrl } = await client.createQueue({ QueueName: source, Attributes: { ...Attributes, RedrivePolicy } })
  const group = isFifo ? { MessageGroupId: "g", MessageDeduplicationId: "a" } : {}
  await client.sendMessage({ QueueUrl, MessageBody: '"a"', ...group })
  for (let time = 0; time <= maxReceiveCount; time++) await client.receiveMessage({ QueueUrl, VisibilityTimeout: 0 })
  return { queue, source }
}

describe.for(servers)("$name", (server) => {
  describe.for([
    ["standard", false],
    ["FIFO", true]
  ] as const)("%s", ([, isFifo]) => {
    test.for([
      ["", []],
      [", also where the source may not be read", ["GetQueueAttributes"]]
    ] as const)("a consumer runs it as often as its policy says%s", async ([, denied]) => {
      await using own = await server.another()
      const client = connect(own.url)
      onTestFinished(() => client.destroy())
      const { queue, source } = await moved(client, isFifo)
      const runs: Array<Run> = []
      await on({ url: own.url }, () =>
        Effect.gen(function* () {
          own.deny(denied, source)
          yield* consume(queue, runs, { retry }, () => no)
          yield* until("three runs", () => runs.length >= 3)
          yield* untilEmpty(server.behind, queue)
        })
      )
      expect(runs.map(({ attempts }) => attempts)).toEqual([1, 2, 3])
      const letters = queue.replace(/(\.fifo)?$/, "-dlq$1")
      expect(await drain(server.behind, letters)).toHaveLength(1)
    })
  })

  test("one that was moved before the source's maxReceiveCount was lowered is run as well", async () => {
    const { queue, source } = await moved(server.client)
    const QueueUrl = await urlOf(server.client, source)
    const { Attributes } = await server.client.getQueueAttributes({ QueueUrl, AttributeNames: ["RedrivePolicy"] })
    const policy = JSON.parse(Attributes!.RedrivePolicy!) as object
    const RedrivePolicy = JSON.stringify({ ...policy, maxReceiveCount: 2 })
    await server.client.setQueueAttributes({ QueueUrl, Attributes: { RedrivePolicy } })
    await server.client.createQueue({ QueueName: `${queue}-dlq` })
    const runs: Array<Run> = []
    await on({ url: server.url, queues: "use" }, () =>
      Effect.gen(function* () {
        yield* consume(queue, runs, { retry }, () => no)
        yield* untilEmpty(server.behind, queue)
      })
    )
    expect(runs).toHaveLength(1)
  })

  test("a function runs it, in whichever instance", async () => {
    const { queue } = await moved(server.client)
    const runs: Array<number> = []
    await server.client.createQueue({ QueueName: `${queue}-dlq` })
    const world = mapping(server.client, (await urlOf(server.client, queue))!)
    for (let instance = 0; instance < 3; instance++) {
      const options = { retry, sqs: { url: server.url, queues: "use" } } as const
      const handler = SqsLambda.handler(queue, options, ({ attempts }) => {
        runs.push(attempts)
        throw new Error("no")
      })
      await world.round(handler)
    }
    expect(runs).toEqual([1, 2, 3])
    expect((await drain(server.behind, `${queue}-dlq`)).map(idOf)).toHaveLength(1)
  })

  test("the queue's own backstop lies above the receives of before, and one that does not is refused", async () => {
    const { queue } = await moved(server.client)
    const runs: Array<Run> = []
    await on({ url: server.url }, () =>
      Effect.gen(function* () {
        yield* consume(queue, runs, { retry })
        yield* until("a run", () => runs.length === 1)
      })
    )
    const QueueUrl = await urlOf(server.client, queue)
    const { Attributes } = await server.client.getQueueAttributes({ QueueUrl, AttributeNames: ["RedrivePolicy"] })
    const policy = JSON.parse(Attributes!.RedrivePolicy!) as { readonly maxReceiveCount: number }
    expect(Number(policy.maxReceiveCount)).toBe(maxReceiveCount + 2 * 3 + 5)
    const RedrivePolicy = JSON.stringify({ ...policy, maxReceiveCount: 11 })
    await server.client.setQueueAttributes({ QueueUrl, Attributes: { RedrivePolicy } })
    const refused = on({ url: server.url }, () => consume(queue, runs, { retry }))
    await expect(refused).rejects.toMatchObject({
      reason: "QueueMismatch",
      detail: expect.stringContaining("needs more than 23") as string
    })
  })

  test("it is listed with its source and redriven there, from attempt 1", async () => {
    const { queue, source } = await moved(server.client)
    const runs: Array<Run> = []
    await on({ url: server.url, queues: "use" }, () =>
      Effect.gen(function* () {
        const letters = yield* DeadLetters.make(queue)
        const [letter] = yield* letters.list()
        expect(letter).toMatchObject({ origin: { queue: source, attempts: maxReceiveCount } })
        // That SQS has moved it is not enough: a policy or the operator says where letters may go.
        expect(yield* letters.redrive({ origin: source })).toMatchObject({ redriven: 1, refused: 0 })
        yield* consume(source, runs, { retry: RetryPolicy.make({ maxRetries: 0, deadLetter: queue }) })
        yield* until("a run", () => runs.length === 1)
      })
    )
    expect(runs[0]?.attempts).toBe(1)
  })
})
