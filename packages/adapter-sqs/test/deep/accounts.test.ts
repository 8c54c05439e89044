/** Queues of other accounts and regions: nothing is made or sent in place of them. */
import { Broker, Consumer } from "@requeue/core"
import type { SQS } from "@aws-sdk/client-sqs"
import * as Effect from "effect/Effect"
import { describe, expect, test } from "vitest"
import { SqsOperator, type SqsOptions } from "../../src/index.ts"
import { SqsLambda } from "../../src/lambda.ts"
import { context } from "./mapping.ts"
import { each } from "./strict.ts"
import { on, outgoing, queueName, until } from "../real/world.ts"

const servers = await each("fauxqs", "elasticmq")

const stranger = "123456789012"
const own = "000000000000"

const count = async (sqs: SQS, prefix: string): Promise<number> =>
  (await sqs.listQueues({ QueueNamePrefix: prefix })).QueueUrls?.length ?? 0

const arn = (queue: string, { account = own, region = "eu-west-1" } = {}): string =>
  `arn:aws:sqs:${region}:${account}:${queue}`

const at = (url: string, account: string): string => url.replace("?", `/${account}?`)

const failure = (
  options: SqsOptions.Options,
  program: (broker: Broker.Service) => Effect.Effect<unknown, unknown>
): Promise<unknown> => on(options, (broker) => Effect.flip(program(broker)))

describe.for(servers)("$name", ({ behind, client, url }) => {
  const programs: ReadonlyArray<
    [name: string, (queue: string) => (broker: Broker.Service) => Effect.Effect<unknown, unknown>]
  > = [
    ["a producer", (queue) => (broker) => broker.publish([outgoing(queue, "a")])],
    [
      "a consumer",
      (queue) => (broker) =>
        Effect.scoped(
          Effect.provideService(
            Consumer.start(queue, {}, () => {}),
            Broker.Broker,
            broker
          )
        )
    ],
    ["an operator", (queue) => () => SqsOperator.create({ queue }, { url })]
  ]

  describe.for(programs)("%s", ([, run]) => {
    test("of another account's queue makes none of its name, and says what can be done", async () => {
      const queue = queueName("foreign")
      for (const mode of ["create", "verify"] as const) {
        const refused = await failure({ url, queues: mode }, run(arn(queue, { account: stranger })))
        expect(refused).toMatchObject({ reason: "QueueMissing", queue: expect.stringContaining(queue) as string })
        expect(String(refused)).toContain(`Create it with credentials of account ${stranger}`)
      }
      expect(await count(behind, queue)).toBe(0)
    })

    test("of a queue in another region is refused, and none is made", async () => {
      const queue = queueName("remote")
      for (const name of [
        arn(queue, { region: "us-east-1" }),
        `https://sqs.us-east-1.amazonaws.com/${own}/${queue}`,
        `https://queue.amazonaws.com/${own}/${queue}`
      ]) {
        const refused = await failure({ url }, run(name))
        expect(String(refused)).toContain("is in us-east-1, the connection is to eu-west-1")
      }
      expect(await count(behind, queue)).toBe(0)
    })
  })

  test("the account in the connection's URL is that of all queues without one", async () => {
    const queue = queueName("theirs")
    const refused = await failure({ url: at(url, stranger) }, (broker) => broker.publish([outgoing(queue, "a")]))
    expect(refused).toMatchObject({ reason: "QueueMissing", queue })
    expect(await count(behind, queue)).toBe(0)
  })

  test("the remedies: a queue that is there is used by its ARN; one without an account is made", async () => {
    const queue = queueName("there")
    await on({ url }, (broker) => broker.publish([outgoing(queue, "a")]))
    await on({ url }, (broker) => broker.publish([outgoing(arn(queue), "b")]))
    await on({ url: at(url, own) }, (broker) => broker.publish([outgoing(queue, "c")]))
    const { QueueUrl } = await client.getQueueUrl({ QueueName: queue })
    const { Attributes } = await client.getQueueAttributes({ QueueUrl, AttributeNames: ["All"] })
    expect(Attributes?.ApproximateNumberOfMessages).toBe("3")
    expect(Attributes).not.toHaveProperty("RedrivePolicy")
  })

  test("a consumer by ARN does not change a queue that may be another account's", async () => {
    const queue = queueName("kept")
    for (const QueueName of [queue, `${queue}-dlq`]) await behind.createQueue({ QueueName })
    const runs: Array<string> = []
    await on({ url }, (broker) =>
      Effect.gen(function* () {
        yield* Consumer.start(arn(queue), {}, ({ id }) => void runs.push(id))
        yield* broker.publish([outgoing(queue, "a")])
        yield* until("a run", () => runs.length === 1)
      })
    )
    const { QueueUrl } = await client.getQueueUrl({ QueueName: queue })
    const { Attributes } = await client.getQueueAttributes({ QueueUrl, AttributeNames: ["All"] })
    expect(Attributes).not.toHaveProperty("RedrivePolicy")
  })

  test("a function refuses events of a queue of the same name in another account or region", async () => {
    const queue = queueName("event")
    await Effect.runPromise(SqsOperator.create({ queue }, { url }))
    const runs: Array<string> = []
    const handler = SqsLambda.handler(queue, { sqs: { url } }, ({ id }) => void runs.push(id))
    const record = {
      messageId: "a",
      receiptHandle: "a",
      body: "1",
      attributes: { ApproximateReceiveCount: "1", SentTimestamp: "1" }
    }
    for (const eventSourceARN of [arn(queue, { account: stranger }), arn(queue, { region: "us-east-1" })]) {
      await expect(handler({ Records: [{ ...record, eventSourceARN }] }, context())).rejects.toMatchObject({
        field: "event.Records[0].eventSourceARN",
        detail: expect.stringContaining(
          `the ARN is ${eventSourceARN}, but the handler is for the queue ${queue} of `
        ) as string
      })
    }
    const { batchItemFailures } = await handler({ Records: [{ ...record, eventSourceARN: arn(queue) }] }, context())
    expect([batchItemFailures, runs]).toEqual([[], ["a"]])
  })
})

test("credentials that tell their account create its queues, and no others", async () => {
  const { behind, url } = servers[0]!
  const queue = queueName("told")
  const keep = { ...process.env }
  const { password, username } = new URL(url)
  Object.assign(process.env, { AWS_ACCESS_KEY_ID: username, AWS_SECRET_ACCESS_KEY: password, AWS_ACCOUNT_ID: own })
  try {
    const anonymous = url.replace(/\/\/[^@]*@/, "//")
    await on({ url: anonymous }, (broker) => broker.publish([outgoing(arn(queue), "a")]))
    expect(await count(behind, queue)).toBe(1)
    const theirs = arn(queue, { account: stranger })
    expect(await failure({ url: anonymous }, (broker) => broker.publish([outgoing(theirs, "a")]))).toMatchObject({
      reason: "QueueMissing"
    })
  } finally {
    process.env = keep
  }
})
