/** What a function on Lambda refuses, before it asks SQS anything. */
import { Backoff } from "@requeue/core"
import { expect, onTestFinished, test, vi } from "vitest"
import { SqsLambda } from "../src/lambda.ts"

const url = "sqs://key:secret@127.0.0.1:1?region=eu-west-1"
const sqs = { url }
const context = { getRemainingTimeInMillis: () => 20_000 }
const long = { maxRetries: 24, backoff: Backoff.constant("10 hours") }

test.each([
  ["an unknown option", () => SqsLambda.handler("q", { sqs, retries: 3 } as SqsLambda.Options, () => {}), /retries/],
  ["no handler", () => SqsLambda.handler("q", { sqs }, undefined as never), /handler must be a function/],
  ["a wrong reserve", () => SqsLambda.handler("q", { sqs, reserve: "2 minutes" }, () => {}), /reserve/],
  ["a wrong batch", () => SqsLambda.batchHandler("q", { sqs, maxBatchSize: 0 }, () => {}), /maxBatchSize/],
  ["no region", () => SqsLambda.handler("q", {}, () => {}), /sqs.url.*AWS_REGION/],
  ["a wrong option of SQS", () => SqsLambda.handler("q", { sqs: { url, pollers: 0 } }, () => {}), /pollers/],
  ["its own dead letters", () => SqsLambda.handler("q", { sqs, retry: { deadLetter: "q" } }, () => {}), /deadLetter/],
  ["a wrong name", () => SqsLambda.handler("q!", { sqs }, () => {}), /characters/],
  ["a policy that outlasts the queue", () => SqsLambda.handler("q", { sqs, retry: long }, () => {}), /^retention.*10d/]
])("%s is refused when the function is loaded", (_, load, message) => {
  expect(load).toThrow(message)
})

test("an event of something else, and another queue's, is refused", async () => {
  const handler = SqsLambda.handler("other", { sqs }, () => {})
  await expect(handler({} as SqsLambda.SqsEvent, context)).rejects.toMatchObject({ field: "event.Records" })
  const record: SqsLambda.SqsRecord = {
    messageId: "m",
    receiptHandle: "h",
    body: "1",
    attributes: { ApproximateReceiveCount: "1", SentTimestamp: "1" } as SqsLambda.SqsRecord["attributes"], // no others are read
    messageAttributes: {},
    eventSourceARN: "arn:aws:sqs:eu-west-1:000000000000:orders"
  }
  await expect(handler({ Records: [record] }, context)).rejects.toMatchObject({
    field: "event.Records[0].eventSourceARN"
  })
})

test("a call without Lambda's context is refused", async () => {
  const handler = SqsLambda.handler("q", { sqs }, () => {}) as (event: unknown) => Promise<unknown> // as plain JavaScript calls it
  await expect(handler({ Records: [] })).rejects.toMatchObject({ field: "context" })
})

test("the region that Lambda names is the default", () => {
  vi.stubEnv("AWS_REGION", "eu-west-1")
  onTestFinished(() => {
    vi.unstubAllEnvs()
  })
  expect(SqsLambda.handler("q", {}, () => {})).toBeTypeOf("function")
})
