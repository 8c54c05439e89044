import { expect, test } from "vitest"
import { arrived } from "../src/internal/consume/arrival.ts"
import { refusal, toMessages } from "../src/internal/lambda/event.ts"
import type { SqsLambda } from "../src/lambda.ts"

/** https://docs.aws.amazon.com/lambda/latest/dg/with-sqs.html */
const standard = {
  messageId: "059f36b4-87a3-44ab-83d2-661975830a7d",
  receiptHandle: "AQEBwJnKyrHigUMZj6rYigCgxlaS3SLy0a...",
  body: "Test message.",
  attributes: {
    ApproximateReceiveCount: "1",
    SentTimestamp: "1545082649183",
    SenderId: "AIDAIENQZJOLO23YVJ4VO",
    ApproximateFirstReceiveTimestamp: "1545082649185"
  },
  messageAttributes: {
    myAttribute: { stringValue: "myValue", stringListValues: [], binaryListValues: [], dataType: "String" }
  },
  md5OfBody: "e4e68fb7bd0e697a0ae8f1bb342846b3",
  eventSource: "aws:sqs",
  eventSourceARN: "arn:aws:sqs:us-east-2:123456789012:my-queue",
  awsRegion: "us-east-2"
}

const fifo = {
  messageId: "11d6ee51-4cc7-4302-9e22-7cd8afdaadf5",
  receiptHandle: "AQEBBX8nesZEXmkhsmZeyIE8iQAMig7qw...",
  body: "Test message.",
  attributes: {
    ApproximateReceiveCount: "3",
    SentTimestamp: "1573251510774",
    SequenceNumber: "18849496460467696128",
    MessageGroupId: "1",
    SenderId: "AIDAIO23YVJENQZJOL4VO",
    MessageDeduplicationId: "1",
    ApproximateFirstReceiveTimestamp: "1573251510774"
  },
  messageAttributes: {},
  md5OfBody: "e4e68fb7bd0e697a0ae8f1bb342846b3",
  eventSource: "aws:sqs",
  eventSourceARN: "arn:aws:sqs:us-east-2:123456789012:fifo.fifo",
  awsRegion: "us-east-2"
}

const source = (name: string) => ({ name, region: "us-east-2", account: "123456789012" })

const messagesOf = (record: SqsLambda.SqsRecord, name: string) => {
  const event = { Records: [record] }
  expect(refusal(event, source(name))).toBeUndefined()
  return toMessages(event)
}

const deliveryOf = (record: SqsLambda.SqsRecord, name: string) => {
  const [message] = messagesOf(record, name)
  return arrived(message!, { uncounted: 0, before: 0, now: 0 }, undefined)
}

test("a message of a standard queue", () => {
  const delivery = deliveryOf(standard, "my-queue")
  expect({ ...delivery, native: delivery.native }).toEqual({
    body: Buffer.from("Test message."),
    headers: { myAttribute: "myValue" },
    attempts: 1,
    metadata: expect.objectContaining({ id: standard.messageId, firstPublished: 1545082649183, attempts: 0 }),
    native: {
      sqs: {
        messageId: standard.messageId,
        attributes: { myAttribute: { type: "String", value: "myValue" } },
        system: expect.objectContaining({ ApproximateReceiveCount: "1" })
      }
    }
  })
})

test("a message of a FIFO queue, received for the third time", () => {
  expect(deliveryOf(fifo, "fifo.fifo")).toMatchObject({ attempts: 3, headers: { "message-group-id": "1" } })
})

test("bytes and numbers among the attributes, and nulls where AWS has no value", () => {
  const messageAttributes = {
    bytes: { binaryValue: Buffer.from([0, 1, 255]).toString("base64"), stringValue: null, dataType: "Binary" },
    number: { stringValue: "1.5", binaryValue: null, dataType: "Number" }
  }
  const record = { ...standard, messageAttributes } as unknown as SqsLambda.SqsRecord
  const [message] = messagesOf(record, "my-queue")
  expect(message!.MessageAttributes).toEqual({
    bytes: { DataType: "Binary", BinaryValue: Buffer.from([0, 1, 255]) },
    number: { DataType: "Number", StringValue: "1.5" }
  })
})

test("bytes of an attribute that are not in base64 are the text that they are", () => {
  const messageAttributes = { bytes: { binaryValue: "no base64!", dataType: "Binary" } }
  expect(deliveryOf({ ...standard, messageAttributes }, "my-queue").headers).toEqual({ bytes: "no base64!" })
})

test("a body that is not written as its encoding says is undecodable, with its text", () => {
  const messageAttributes = { "requeue-encoding": { stringValue: "base64", dataType: "String" } }
  const { body, unreadable } = deliveryOf({ ...standard, messageAttributes }, "my-queue")
  expect([new TextDecoder().decode(body), unreadable?.name]).toEqual(["Test message.", "UnreadableBody"])
})

test("an event of a program that sends none of the fields that are empty, or null for them", () => {
  const record = { ...standard, messageAttributes: null } as unknown as SqsLambda.SqsRecord
  expect(messagesOf(record, "my-queue")[0]!.MessageAttributes).toEqual({})
})

test("attributes that are none cost neither the message nor the others, and one named __proto__ is one", () => {
  const messageAttributes: unknown = JSON.parse(
    `{"none":null,"text":"x","odd":{"dataType":1,"stringValue":2},"__proto__":{"dataType":"String","stringValue":"p"}}`
  )
  const record = { ...standard, messageAttributes } as unknown as SqsLambda.SqsRecord
  const { headers } = deliveryOf(record, "my-queue")
  expect(Object.entries(headers)).toEqual([
    ["odd", ""],
    ["__proto__", "p"]
  ])
})

test("an event without messages", () => {
  expect(refusal({ Records: [] }, source("my-queue"))).toBeUndefined()
  expect(toMessages({ Records: [] })).toEqual([])
})

test.each([
  [undefined, "event.Records"],
  [{}, "event.Records"],
  [{ Records: {} }, "event.Records"],
  [{ Records: [{ ...standard, messageId: "" }] }, "event.Records[0].messageId"],
  [{ Records: [standard, { ...standard, messageId: null }] }, "event.Records[1].messageId"],
  [{ Records: [{ ...standard, receiptHandle: undefined }] }, "event.Records[0].receiptHandle"],
  [{ Records: [{ ...standard, body: null }] }, "event.Records[0].body"],
  [{ Records: [{ ...standard, attributes: undefined }] }, "event.Records[0].attributes.ApproximateReceiveCount"],
  [{ Records: [{ ...standard, attributes: {} }] }, "event.Records[0].attributes.ApproximateReceiveCount"],
  [
    { Records: [{ ...standard, eventSourceARN: "arn:aws:sns:us-east-2:1:my-queue-2" }] },
    "event.Records[0].eventSourceARN"
  ],
  [{ Records: [fifo] }, "event.Records[0].eventSourceARN"],
  [
    { Records: [{ ...standard, eventSourceARN: "arn:aws:sns:us-east-2:123456789012:my-queue" }] },
    "event.Records[0].eventSourceARN"
  ],
  [
    { Records: [{ ...standard, eventSourceARN: "arn:aws:sqs:us-east-2:210987654321:my-queue" }] },
    "event.Records[0].eventSourceARN"
  ],
  [
    { Records: [{ ...standard, eventSourceARN: "arn:aws:sqs:us-east-1:123456789012:my-queue" }] },
    "event.Records[0].eventSourceARN"
  ],
  [{ Records: [null] }, "event.Records[0]"]
])("is refused as a whole: %j", (event, field) => {
  const refused = refusal(event as unknown as SqsLambda.SqsEvent, source("my-queue"))
  expect(refused?.field).toBe(field)
  expect(refused?.message).toContain("Map the function to the SQS queue my-queue")
})
