import { type BrokerError, RetryPolicy } from "@requeue/core"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import { describe, expect, test } from "vitest"
import * as Queues from "../../src/internal/declare/declare.ts"
import * as SqsOptions from "../../src/SqsOptions.ts"
import * as SqsPlan from "../../src/SqsPlan.ts"
import { strict } from "./strict.ts"
import { queueName } from "../real/world.ts"

const { client, proxy, url } = await strict()

const settings = (options: Partial<SqsOptions.Options> = {}) =>
  Result.getOrThrow(SqsOptions.decode({ url, ...options }))

const make = (options: Partial<SqsOptions.Options> = {}) => Queues.make(client, settings(options))

const requestOf = (queue: string, options: RetryPolicy.Options = {}): SqsPlan.Request => {
  const retry = RetryPolicy.make(options)
  return { queue, retry, deadLetterQueues: RetryPolicy.deadLetterQueues(retry, queue) }
}

const planOf = (...args: Parameters<typeof requestOf>) => SqsPlan.make(requestOf(...args), settings()) as SqsPlan.Plan

const attributes = async (name: string) => {
  const { QueueUrl } = await client.getQueueUrl({ QueueName: name })
  const { Attributes } = await client.getQueueAttributes({ QueueUrl, AttributeNames: ["All"] })
  return Attributes!
}

const exists = (name: string): Promise<boolean> =>
  client.getQueueUrl({ QueueName: name }).then(
    () => true,
    () => false
  )

const run = Effect.runPromise
const failure = (effect: Effect.Effect<unknown, BrokerError.BrokerError>): Promise<BrokerError.BrokerError> =>
  run(Effect.flip(effect))

describe("create", () => {
  test.each([["standard"], ["FIFO"]])("%s queues as they are planned, and no change the second time", async (kind) => {
    const base = queueName("orders")
    const [queue, letters] = kind === "FIFO" ? [`${base}.fifo`, `${base}-dlq.fifo`] : [base, `${base}-dlq`]
    const plan = planOf(queue, { maxRetries: 5 })
    await run(make().ensure(requestOf(queue, { maxRetries: 5 })))
    const [work, dead] = [await attributes(queue), await attributes(letters)]
    for (const { attributes: planned, role } of plan.queues) {
      expect(role === "work" ? work : dead).toMatchObject(planned)
    }
    expect(JSON.parse(work["RedrivePolicy"]!)).toMatchObject({
      deadLetterTargetArn: dead["QueueArn"],
      maxReceiveCount: 37
    })
    expect(JSON.parse(dead["RedriveAllowPolicy"]!)).toEqual({
      redrivePermission: "byQueue",
      sourceQueueArns: [work["QueueArn"]]
    })
    await run(make().ensure(requestOf(queue, { maxRetries: 5 })))
    expect(await attributes(queue)).toEqual(work)
    expect(await attributes(letters)).toEqual(dead)
  })

  test("what a producer has made gets its backstop from the consumer", async () => {
    const queue = queueName("orders")
    await run(make().find(queue))
    expect(await attributes(queue)).not.toHaveProperty("RedrivePolicy")
    await run(make().ensure(requestOf(queue)))
    expect(JSON.parse((await attributes(queue))["RedrivePolicy"]!)).toMatchObject({ maxReceiveCount: 33 })
  })

  test("a shared dead-letter queue lets each of its queues in", async () => {
    const [one, two, letters] = ["one", "two", "letters"].map(queueName) as [string, string, string]
    for (const queue of [one, two]) await run(make().ensure(requestOf(queue, { deadLetter: letters })))
    const allowed = JSON.parse((await attributes(letters))["RedriveAllowPolicy"]!) as Record<string, unknown>
    const arns = [(await attributes(one))["QueueArn"], (await attributes(two))["QueueArn"]]
    expect(allowed).toEqual({ redrivePermission: "byQueue", sourceQueueArns: arns })
  })

  test("a backstop that was taken away comes again, and its queue is let in once", async () => {
    const queue = queueName("orders")
    await run(make().ensure(requestOf(queue)))
    const [work, letters] = [await attributes(queue), await attributes(`${queue}-dlq`)]
    const { QueueUrl } = await client.getQueueUrl({ QueueName: queue })
    await client.setQueueAttributes({ QueueUrl, Attributes: { RedrivePolicy: "" } })
    await run(make().ensure(requestOf(queue)))
    expect((await attributes(queue))["RedrivePolicy"]).toEqual(work["RedrivePolicy"])
    expect(await attributes(`${queue}-dlq`)).toEqual(letters)
  })

  test("what exists is not changed, and another policy that fits its backstop starts", async () => {
    const queue = queueName("orders")
    await run(make().ensure(requestOf(queue, { maxRetries: 5 })))
    const before = await attributes(queue)
    await run(make({ visibilityTimeout: 60_000 }).ensure(requestOf(queue, { maxRetries: 10 })))
    expect(await attributes(queue)).toEqual(before)
  })

  test("a policy that SQS would interfere with is refused, with its remedy", async () => {
    const queue = queueName("orders")
    await run(make().ensure(requestOf(queue, { maxRetries: 5 })))
    const error = await failure(make().ensure(requestOf(queue, { maxRetries: 26 })))
    expect(error).toMatchObject({ reason: "QueueMismatch", queue, operation: "verify" })
    expect(error.message).toContain("after 37 receives, without its error: the policy needs more than 37")
    expect(error.remedy).toContain("Set maxReceiveCount to 79")
  })

  test("a queue that is gone is made again once it is forgotten, and SQS takes its name again", async () => {
    const queue = queueName("orders")
    const queues = make()
    const { url } = await run(queues.find(queue))
    await client.deleteQueue({ QueueUrl: url })
    queues.forget(queue)
    expect(await failure(queues.find(queue))).toMatchObject({
      reason: "QueueMissing",
      remedy: "Try again after 60 seconds: until then, SQS refuses a queue with the name of a deleted one"
    })
    await proxy.forward(60_000)
    await run(queues.find(queue))
    expect(await exists(queue)).toBe(true)
  })

  test("two consumers that start at once", async () => {
    const queue = queueName("orders")
    const ensure = () => run(make().ensure(requestOf(queue)))
    await Promise.all([ensure(), ensure(), run(make().find(queue))])
    const plan = planOf(queue)
    expect(SqsPlan.verify(plan, await run(make().inspect(plan))).every(({ isGood }) => isGood)).toBe(true)
  })
})

describe("verify", () => {
  const verify = { queues: "verify" } as const

  test("a missing queue and a missing dead-letter queue are errors, and nothing is made", async () => {
    const queue = queueName("orders")
    expect(await failure(make(verify).ensure(requestOf(queue)))).toMatchObject({
      reason: "QueueMissing",
      queue: `${queue}.dlq`,
      remedy: `Create ${queue}-dlq, or set queues: "create"`
    })
    expect(await failure(make(verify).find(queue))).toMatchObject({ reason: "QueueMissing", queue })
    expect(await exists(queue)).toBe(false)
  })

  test("a visibility timeout that ends before the function does", async () => {
    const request = requestOf(queueName("orders"))
    await run(make().ensure(request))
    await run(make(verify).ensure(request, 30_000))
    expect(await failure(make(verify).ensure(request, 31_000))).toMatchObject({
      reason: "QueueMismatch",
      detail: "VisibilityTimeout: a message is delivered again after 30s, a handler may run for 31s"
    })
  })
})

test("use: takes what is there as it is, if it is there", async () => {
  const use = { queues: "use" } as const
  const queue = queueName("orders")
  expect(await failure(make(use).ensure(requestOf(queue)))).toMatchObject({ reason: "QueueMissing" })
  await run(make().ensure(requestOf(queue, { maxRetries: 1 })))
  await run(make(use).ensure(requestOf(queue, { maxRetries: 100 })))
})
