/** FIFO queues on Lambda. */
import { Backoff, Failure, RetryPolicy } from "@requeue/core"
import { Metadata } from "@requeue/core/port"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import { setTimeout as sleep } from "node:timers/promises"
import { expect, test } from "vitest"
import * as Queues from "../../src/internal/declare/declare.ts"
import { SqsOptions } from "../../src/index.ts"
import { SqsLambda } from "../../src/lambda.ts"
import { context, mapping } from "./mapping.ts"
import { firstOf } from "./strict.ts"
import { queueName } from "../real/world.ts"

const { client, url } = await firstOf("elasticmq", "fauxqs")
const sqs = { url }

const made = async (base: string) => {
  const queue = `${queueName(base)}.fifo`
  const letters = queue.replace(".fifo", "-dlq.fifo")
  const retry = RetryPolicy.make({ maxRetries: 20 })
  const settings = Result.getOrThrow(SqsOptions.decode({ url }))
  await Effect.runPromise(Queues.make(client, settings).ensure({ queue, retry, deadLetterQueues: [`${queue}.dlq`] }))
  const urlOf = async (QueueName: string) => (await client.getQueueUrl({ QueueName })).QueueUrl!
  const QueueUrl = await urlOf(queue)
  return {
    queue,
    ...mapping(client, QueueUrl),
    /** Bodies begin with the name of their group. */
    send: async (...bodies: ReadonlyArray<string>) => {
      for (const body of bodies) {
        await client.sendMessage({
          QueueUrl,
          MessageBody: JSON.stringify(body),
          MessageGroupId: body[0],
          MessageDeduplicationId: body
        })
      }
    },
    giveBack: (ReceiptHandle: string) =>
      client.changeMessageVisibility({ QueueUrl, ReceiptHandle, VisibilityTimeout: 0 }),
    deadLetters: async () => {
      const { Messages = [] } = await client.receiveMessage({
        QueueUrl: await urlOf(letters),
        MaxNumberOfMessages: 10,
        WaitTimeSeconds: 1,
        MessageSystemAttributeNames: ["All"],
        MessageAttributeNames: ["All"]
      })
      return Messages.map(({ Attributes, Body, MessageAttributes }) => ({
        body: Body,
        group: Attributes?.MessageGroupId,
        reason: Metadata.decode(MessageAttributes!["requeue"]!.StringValue!)!.deadLetter!.reason
      }))
    }
  }
}

const bodiesOf = ({ Records }: SqsLambda.SqsEvent, { batchItemFailures }: SqsLambda.SqsBatchResponse) =>
  batchItemFailures.map(({ itemIdentifier }) => {
    return JSON.parse(Records.find(({ messageId }) => messageId === itemIdentifier)!.body) as unknown
  })

test.each(["single messages", "batches"])(
  "a message that comes again takes those behind it along: %s",
  async (kind) => {
    const world = await made("halt")
    const runs: Array<string> = []
    const handle = (message: { readonly body: string; readonly attempts: number }): boolean => {
      runs.push(`${message.body} ${message.attempts}`)
      return message.body !== "a2" || message.attempts > 1
    }
    const options = { sqs, concurrency: 3, retry: { backoff: Backoff.constant("1 second") } }
    const handler =
      kind === "batches"
        ? SqsLambda.batchHandler<string>(world.queue, options, ({ messages }) => {
            for (const message of messages) if (!handle(message)) message.retry()
          })
        : SqsLambda.handler<string>(world.queue, options, (message) => {
            if (!handle(message)) throw new Error("no")
          })
    await world.send("a1", "a2", "b1", "a3", "b2", "a4")
    const event = await world.event()
    expect(event.Records).toHaveLength(6)
    const answer = await handler(event, context())
    expect(bodiesOf(event, answer)).toEqual(["a2", "a3", "a4"])
    // A batch handler sees what is behind it in its batch, and a handler of single messages does not.
    const seen = kind === "batches" ? ["a3 1", "a4 1"] : []
    expect(runs.toSorted()).toEqual(["a1 1", "a2 1", ...seen, "b1 1", "b2 1"])
    await world.apply(event, answer)
    expect(await world.event()).toEqual({ Records: [] })
    runs.length = 0
    while (runs.length < 3) if ((await world.round(handler)) === 0) await sleep(50)
    // That a3 and a4 were received before and not run is no attempt of theirs.
    expect(runs).toEqual(kind === "batches" ? ["a2 2", "a3 2", "a4 2"] : ["a2 2", "a3 1", "a4 1"])
    expect(await world.event()).toEqual({ Records: [] })
  }
)

test("ten of one group, of which two fit into an invocation, each of another instance: no letter of any that was not run", async () => {
  const world = await made("few")
  const runs: Array<string> = []
  const names = Array.from({ length: 10 }, (_, index) => `a${index}`)
  await world.send(...names)
  const seen = new Set<string>()
  while (seen.size < names.length) {
    let begun = 0
    const retry = { maxRetries: 0 }
    const handler = SqsLambda.handler<string>(world.queue, { sqs, retry, reserve: 10_000 }, ({ body }) => {
      runs.push(body)
      if (++begun > 2) return new Promise(() => {})
      seen.add(body)
      return undefined
    })
    if ((await world.round(handler, 12_000)) === 0) await sleep(50)
  }
  expect([...seen]).toEqual(names)
  expect(await world.deadLetters()).toEqual([])
})

test("messages that were received too often, by another instance: none is given up before it is run", async () => {
  const world = await made("behind")
  const runs: Array<string> = []
  await world.send("a1", "a2", "a3")
  for (let time = 0; time < 4; time++) {
    for (const { receiptHandle } of (await world.event()).Records.toReversed()) await world.giveBack(receiptHandle)
  }
  const retry = { maxRetries: 3, maxDeliveries: 4 }
  const handler = SqsLambda.handler<string>(world.queue, { sqs, retry }, ({ body }) => void runs.push(body))
  while (runs.length < 3) await world.round(handler)
  expect(runs).toEqual(["a1", "a2", "a3"])
  expect(await world.deadLetters()).toEqual([])
})

test("a dead letter goes to its group's dead letters, and the next one is run", async () => {
  const world = await made("dead")
  const runs: Array<string> = []
  const handler = SqsLambda.handler<string>(world.queue, { sqs }, ({ body }) => {
    runs.push(body)
    if (body === "a1") throw new Failure.PermanentError({ message: "never" })
  })
  await world.send("a1", "a2")
  while (runs.length < 2) await world.round(handler)
  expect(runs).toEqual(["a1", "a2"])
  expect(await world.deadLetters()).toEqual([{ body: '"a1"', group: "a", reason: "permanent" }])
})

test("random groups and failures: each group is done in its order, and nothing is missing", async () => {
  const world = await made("order")
  const sent = Array.from({ length: 60 }, (_, index) => `${"abcd"[(index * 7) % 4]}${index}`)
  const done: Array<string> = []
  const begun: Array<string> = []
  const handler = SqsLambda.handler<string>(world.queue, { sqs, concurrency: 4 }, async ({ attempts, body }) => {
    begun.push(body)
    await sleep(Number(body.slice(1)) % 3)
    if (attempts === 1 && Number(body.slice(1)) % 5 === 0) throw new Error("no")
    done.push(body)
  })
  await world.send(...sent)
  while (done.length < sent.length) if ((await world.round(handler)) === 0) await sleep(50)
  const ofGroup = (bodies: ReadonlyArray<string>, group: string) => bodies.filter((body) => body.startsWith(group))
  for (const group of "abcd") {
    expect(ofGroup(done, group)).toEqual(ofGroup(sent, group))
    // None is begun while one before it is not done: a second run comes right after the first.
    expect([...new Set(ofGroup(begun, group))]).toEqual(ofGroup(sent, group))
  }
})
