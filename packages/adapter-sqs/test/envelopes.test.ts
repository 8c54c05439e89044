/** Messages in envelopes, from the broker to the handler, the dead letters, and back. */
import { deadLetters } from "@requeue/operations/promise"
import { connect, json, queue } from "@requeue/core/promise"
import * as EnvelopeCodec from "../src/EnvelopeCodec.ts"
import { assert, test } from "vitest"
import { MemoryBroker } from "@requeue/adapter-memory"

const notification = {
  Type: "Notification",
  MessageId: "n1",
  TopicArn: "arn:aws:sns:eu-west-1:111122223333:orders",
  Message: '{"total":9.5}',
  Timestamp: "2021-02-16T21:41:19.978Z",
  MessageAttributes: { tenant: { Type: "String", Value: "a" } }
}

const found = {
  "content-type": "application/json",
  "x-amz-sns-message-id": "n1",
  "x-amz-sns-topic-arn": notification.TopicArn,
  "x-amz-sns-timestamp": notification.Timestamp,
  tenant: "a"
}

test("its handler sees content and attributes at each attempt, and the dead letter has the envelope, redriven as well", async () => {
  const seen: Array<unknown> = []
  await using requeue = await connect(MemoryBroker.layer(), { logLevel: "None" })
  const orders = queue<unknown>("orders", { codec: EnvelopeCodec.sns(json) })
  const { promise: dead, resolve: end } = Promise.withResolvers<void>()
  const { promise: again, resolve: endAgain } = Promise.withResolvers<void>()
  await requeue.consume(
    orders,
    { retry: { maxRetries: 1 }, retryDelay: 0, onEvent: (event) => event._tag === "DeadLettered" && end() },
    async ({ body, headers }) => {
      assert.isFrozen(headers)
      seen.push([body, headers])
      if (seen.length === 3) return endAgain()
      throw new Error("no")
    }
  )
  await requeue.send("orders", notification)
  await dead
  const letters = deadLetters(requeue, "orders.dlq")
  const [letter] = await letters.list()
  assert.deepStrictEqual(json.decode(letter!.body, {}), notification)
  assert.deepStrictEqual(letter!.headers, { "content-type": "application/json" })
  await letters.redrive()
  await again
  assert.deepStrictEqual(
    seen,
    [1, 2, 3].map(() => [{ total: 9.5 }, found])
  )
})

test("a batch has the headers of each message, bare or not, and a request to confirm is a dead letter", async () => {
  const { promise: seen, resolve: end } = Promise.withResolvers<unknown>()
  const { promise: reason, resolve: refuse } = Promise.withResolvers<string>()
  await using requeue = await connect(MemoryBroker.layer(), { logLevel: "None" })
  const orders = queue<unknown>("orders", { codec: EnvelopeCodec.sns(json) })
  await requeue.sendBatch<unknown>("orders", [
    { body: notification },
    { body: { ...notification, Type: "SubscriptionConfirmation" } },
    { body: { total: 1 }, headers: { tenant: "b" } }
  ])
  await requeue.consumeBatch(
    orders,
    {
      batch: { maxBatchSize: 2 },
      onEvent: (event) => event._tag === "DeadLettered" && refuse(`${event.reason}: ${event.error.name}`)
    },
    async ({ messages }) => end(messages.map(({ body, headers }) => [body, headers["tenant"]]))
  )
  assert.deepStrictEqual(await seen, [
    [{ total: 9.5 }, "a"],
    [{ total: 1 }, "b"]
  ])
  assert.strictEqual(await reason, "undecodable: EnvelopeError")
})
