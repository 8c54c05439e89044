/** Invokes the function of examples/sqs-lambda.ts with one message, as AWS Lambda would. */
import { handler } from "../../sqs-lambda.ts"
const record = {
  messageId: "1",
  receiptHandle: "receipt",
  body: JSON.stringify({ total: 9.5 }),
  attributes: { ApproximateReceiveCount: "1", SentTimestamp: String(Date.now()) },
  messageAttributes: {},
  eventSource: "aws:sqs",
  eventSourceARN: `arn:aws:sqs:${process.env["AWS_REGION"]}:000000000000:examples-orders`,
  awsRegion: process.env["AWS_REGION"]
}
const { batchItemFailures } = await handler({ Records: [record] }, { getRemainingTimeInMillis: () => 20000 })
if (batchItemFailures.length > 0) throw new Error("the message was not handled")
